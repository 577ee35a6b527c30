"use strict";
// What every browser of a page shares: filters above, what was found at the left, the chosen one at the right, and
// an address that keeps all of it. Everything shown came from outside, so it makes elements and sets their text; no
// text is ever read as HTML.
const panes = (() => {
  const PAGE = 50;
  const controls = new Map();

  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "class") element.className = value;
      else element.setAttribute(name, value);
    }
    for (const child of children) {
      if (child !== null && child !== undefined) element.append(child);
    }
    return element;
  }

  // A text may come from any language: it takes its own direction and keeps it to itself.
  function said(text, tag = "bdi", attributes = {}) {
    const whole = Array.isArray(text) ? text[0] : text;
    const element = make(tag, { dir: "auto", ...attributes });
    element.textContent = whole;
    if (Array.isArray(text)) {
      element.append(make("span", { class: "beside" }, ` … (cut here; ${text[1]} more characters)`));
    }
    return element;
  }

  const plain = (text) => (Array.isArray(text) ? text[0] : text || "");

  // -- the filters

  // A choice with a first entry that stands for none; an empty name leaves that entry out.
  function choice(name, label, entries, none = "any") {
    const select = make("select", { id: `f-${name}` }, none ? make("option", { value: "" }, none) : null);
    for (const [value, text] of entries) select.append(make("option", { value }, text));
    controls.set(name, select);
    return make("div", {}, make("label", { for: `f-${name}` }, label), select);
  }

  function check(name, label) {
    const box = make("input", { type: "checkbox", id: `f-${name}` });
    controls.set(name, box);
    return make("label", { class: "check" }, box, label);
  }

  const value = (name) => {
    const control = controls.get(name);
    if (!control) return "";
    return control.type === "checkbox" ? (control.checked ? "1" : "") : control.value.trim();
  };

  const sought = () => value("q").toLowerCase().split(/\s+/).filter(Boolean);

  function restore(wanted) {
    for (const [name, control] of controls) {
      const given = wanted.get(name) || "";
      if (control.type === "checkbox") control.checked = given === "1";
      else control.value = given;
      if (control.tagName === "SELECT" && control.selectedIndex < 0) control.value = "";
    }
  }

  function form(label, filters, changed) {
    const search = make("input", { type: "search", id: "f-q", autocomplete: "off", spellcheck: "false" });
    controls.set("q", search);
    const clear = make("button", { type: "button" }, "Clear filters");
    clear.addEventListener("click", () => { restore(new URLSearchParams()); changed(); });
    const all = make(
      "form",
      { class: "filters", role: "search" },
      make("div", { class: "search" }, make("label", { for: "f-q" }, label), search),
      ...filters(),
      clear,
    );
    let waiting = 0;
    search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(changed, 150); });
    all.addEventListener("change", changed);
    all.addEventListener("submit", (event) => { event.preventDefault(); changed(); });
    return all;
  }

  // -- together

  // `items` have an `id`. `noun` is what one is called, `label` what is searched for. `filters()` gives the elements
  // that choose, `matching()` the items that fit, in order; `summary(item)` its line and what stands below it,
  // `describe(item)` its elements. `keep`: a change of the filters keeps what was chosen, where it still fits.
  function browse({ holder, items, noun, label, filters, matching, summary, describe, keep = true }) {
    const state = { page: 0, found: [] };
    const count = make("p", { id: "count", role: "status" });
    const list = make("ol", { class: "list", "aria-label": `${noun[0].toUpperCase()}${noun.slice(1)}s found` });
    const pages = make("div", { class: "pages" });
    const detail = make("article", { class: "detail", id: "detail", tabindex: "-1", "aria-label": `The chosen ${noun}` });

    function entry(item) {
      const [what, beside] = summary(item);
      const button = make("button", { type: "button" }, said(beside, "span", { class: "beside" }), said(what, "span", { class: "what" }));
      button.addEventListener("click", () => choose(item, true));
      item.button = button;
      return make("li", {}, button);
    }

    function turn(step, name, last) {
      const button = make("button", { type: "button" }, name);
      button.disabled = state.page + step < 0 || state.page + step > last;
      button.addEventListener("click", () => { state.page += step; drawList(); });
      return button;
    }

    function drawList() {
      const start = state.page * PAGE;
      const shown = state.found.slice(start, start + PAGE);
      const last = Math.max(0, Math.ceil(state.found.length / PAGE) - 1);
      list.replaceChildren(...shown.map(entry));
      const here = state.chosen && shown.includes(state.chosen) ? state.chosen.button : null;
      list.scrollTop = here ? here.offsetTop - list.offsetTop - 60 : 0;
      pages.hidden = last === 0;
      pages.replaceChildren(turn(-1, "Previous", last), `page ${state.page + 1} of ${last + 1}`, turn(1, "Next", last));
      mark();
    }

    function mark() {
      for (const item of state.found) {
        if (item.button) item.button.setAttribute("aria-current", String(item === state.chosen));
      }
    }

    list.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      const here = event.target.closest("li");
      if (!step || !here) return;
      const next = step > 0 ? here.nextElementSibling : here.previousElementSibling;
      event.preventDefault();
      if (!next) return;
      next.firstElementChild.focus();
      choose(state.found[state.page * PAGE + [...list.children].indexOf(next)], false);
      remember();
    });

    // In the chosen one, left and right go to its neighbours.
    detail.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const next = step && state.found[state.found.indexOf(state.chosen) + step];
      if (!next || event.altKey || event.ctrlKey || event.metaKey || event.target.closest(".wide")) return;
      event.preventDefault();
      state.page = Math.floor(state.found.indexOf(next) / PAGE);
      state.chosen = next;
      drawList();
      choose(next, true);
    });

    function choose(item, byHand) {
      state.chosen = item;
      mark();
      detail.replaceChildren(...describe(item));
      if (!byHand) return;
      remember();
      if (matchMedia("(max-width: 46rem)").matches) detail.scrollIntoView();
      detail.focus({ preventScroll: true });
    }

    function remember() {
      const kept = new URLSearchParams();
      for (const name of controls.keys()) if (value(name)) kept.set(name, value(name));
      if (state.chosen) kept.set("item", state.chosen.id);
      history.replaceState(null, "", `#${kept}`);
    }

    function search(stay) {
      for (const item of state.found) delete item.button;
      state.found = matching();
      state.page = 0;
      count.textContent = `${state.found.length} of ${items.length} ${noun}${items.length === 1 ? "" : "s"}`;
      if (!stay || !state.found.includes(state.chosen)) state.chosen = state.found[0];
      state.page = Math.max(0, Math.floor(state.found.indexOf(state.chosen) / PAGE));
      drawList();
      if (state.chosen) choose(state.chosen, false);
      else detail.replaceChildren(make("p", { class: "note" }, `No ${noun} fits these filters.`));
    }

    function changed() {
      search(keep);
      remember();
    }

    function start() {
      const wanted = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
      restore(wanted);
      state.chosen = items.find((item) => item.id === wanted.get("item"));
      search(true);
      if (location.hash.includes("=")) document.getElementById("items").scrollIntoView({ behavior: "instant" });
    }

    holder.append(form(label, filters, changed), count, make("div", { class: "panes" }, make("div", {}, list, pages), detail));
    holder.hidden = false;
    addEventListener("hashchange", () => { if (location.hash.includes("=")) start(); });
    start();
  }

  return { make, said, plain, choice, check, value, sought, browse };
})();

// A link to a folded section opens it; on paper every section is open.
(() => {
  function unfold() {
    const id = location.hash.slice(1);
    const section = id && !id.includes("=") ? document.getElementById(id) : null;
    const fold = section && section.querySelector(":scope > details");
    if (!fold || fold.open) return;
    fold.open = true;
    section.scrollIntoView({ behavior: "instant" });
  }
  for (const link of document.querySelectorAll("nav a")) {
    link.addEventListener("click", () => { setTimeout(unfold, 0); });
  }
  addEventListener("hashchange", unfold);
  addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll("details.fold")) fold.open = true;
  });
  unfold();
})();
