// The contents: open beside a wide page, folded in a bar on top of a narrow one; the section that is read is marked, and
// the keys j and k go to the next one and back.
(() => {
  const nav = document.querySelector("nav.contents");
  if (!nav) return;
  const fold = nav.querySelector("details");
  const wide = matchMedia("(min-width: 1100px)");
  const fit = () => { fold.open = wide.matches; };
  wide.addEventListener("change", fit);
  fit();
  const links = new Map([...nav.querySelectorAll("a")].map((link) => [link.getAttribute("href").slice(1), link]));
  const sections = [...links.keys()].map((id) => document.getElementById(id)).filter(Boolean);
  nav.addEventListener("click", (event) => { if (event.target.closest("a") && !wide.matches) fold.open = false; });

  // The last section whose beginning was reached.
  function current() {
    const line = 0.3 * innerHeight;
    return sections.filter((section) => section.getBoundingClientRect().top <= line).pop() || null;
  }

  let waiting = false;
  function mark() {
    waiting = false;
    const here = current();
    for (const [id, link] of links) {
      if (here && id === here.id) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }
  addEventListener("scroll", () => { if (!waiting) { waiting = true; requestAnimationFrame(mark); } }, { passive: true });
  mark();

  addEventListener("keydown", (event) => {
    const step = { j: 1, k: -1 }[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea")) return;
    const top = nav.offsetHeight < innerHeight / 2 ? nav.offsetHeight + 8 : 8;
    const next = step > 0
      ? sections.find((section) => section.getBoundingClientRect().top > top + 2)
      : sections.filter((section) => section.getBoundingClientRect().top < top - 10).pop();
    if (next) next.scrollIntoView({ behavior: "instant" });
  });
})();
