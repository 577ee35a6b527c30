"use strict";
// Follows the store, walks lists by keys, opens answers without loading the whole page. Everything can be read without it.
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const body = document.body;
  document.documentElement.classList.add("scripted");
  $(".top nav [aria-current]")?.scrollIntoView({ inline: "nearest", block: "nearest" });
  const say = (text) => { $("#said").textContent = text; };

  // A piece of a page. What it holds was escaped by the server; scripts in it would not run.
  async function piece(address, part) {
    const url = new URL(address, location);
    url.searchParams.set("part", part);
    const answer = await fetch(url, { headers: { accept: "text/html" } });
    if (!answer.ok) throw new Error(String(answer.status));
    const found = new DOMParser().parseFromString(await answer.text(), "text/html");
    return [...found.body.childNodes];
  }

  // -- what is live

  const state = { version: Number(body.dataset.version), board: body.dataset.board, settled: Number(body.dataset.settled) };
  const followed = { runs: $("#runs"), story: $("#story"), board: $("#board"), newest: $("#newest"), figures: $("#figures") };

  async function renew(name, part = name) {
    const at = followed[name];
    const focused = all("a", at).indexOf(document.activeElement);
    const row = all("[data-row]", at).findIndex((one) => one.classList.contains("at"));
    const open = all("details", at).map((one) => one.open);
    at.replaceChildren(...await piece(location.href, part));
    all("details", at).forEach((one, k) => { if (open[k]) one.open = true; });
    if (focused >= 0) all("a", at)[focused]?.focus();
    if (row >= 0) all("[data-row]", at)[row]?.classList.add("at");
    if (name === "board") prepareBoard();
  }

  async function look() {
    let now;
    try {
      const answer = await fetch(`/live?b=${encodeURIComponent(body.dataset.benchmark)}`);
      if (!answer.ok) throw new Error();
      now = await answer.json();
    } catch {
      $("#live").textContent = "the view has stopped";
      $(".live").classList.remove("on");
      return setTimeout(look, 5000);
    }
    const fault = $("#fault");
    fault.hidden = !now.fault;
    $("span", fault).textContent = now.fault;
    $(".live").classList.toggle("on", now.running > 0);
    const count = now.running === 1 ? "1 run running" : `${now.running} runs running`;
    const fresh = now.settled - state.settled;
    const list = $("#rows");
    $("#live").textContent = (now.running ? count : "no run is being asked") + (list && fresh > 0 ? ` · ${fresh} new` : "");
    $("#new").hidden = !(list && fresh > 0);
    try {
      if (now.version !== state.version && followed.runs) {
        await renew("runs");
        await renew("newest");
      }
      if ((now.board || "") !== state.board && followed.board) {
        await renew("board");
        await renew("story");
      }
      if (followed.figures && $("[data-waits]")) await renew("figures", $("#filters") ? "figures" : "scorers");
      state.version = now.version;
      state.board = now.board || "";
    } catch { /* asked again in a second */ }
    setTimeout(look, 700);
  }
  setTimeout(look, 700);
  $("#new")?.addEventListener("click", (event) => { event.preventDefault(); location.reload(); });

  // -- the leaderboard's conditions

  const off = new Set();
  function prepareBoard() {
    for (const button of all("[data-condition]")) {
      const name = button.dataset.condition;
      const draw = () => {
        button.setAttribute("aria-pressed", String(!off.has(name)));
        for (const lane of all(".chart .lane")) {
          if ($(".of bdi", lane)?.textContent === name) lane.classList.toggle("off", off.has(name));
        }
      };
      button.addEventListener("click", () => { off.has(name) ? off.delete(name) : off.add(name); draw(); });
      draw();
    }
  }
  prepareBoard();

  // -- filters are sent as they change

  const filters = $("#filters");
  filters?.addEventListener("change", (event) => { if (event.target.tagName === "SELECT") sendFilters(); });
  filters?.addEventListener("submit", (event) => { event.preventDefault(); sendFilters(); });
  function sendFilters() {
    const url = new URL(filters.getAttribute("action") || location.pathname, location);
    for (const [name, value] of new FormData(filters)) if (value && !(name === "sort" && value === "item")) url.searchParams.append(name, value);
    location.assign(url);
  }

  // -- an opened answer

  let tab = sessionStorage.getItem("tab") || "Reply";
  const plain = (name) => name.replace(/ \(.*/, "");
  function prepareDetail() {
    const box = $("[data-tabs]");
    if (box) {
      const panes = all("[data-tab]", box);
      const bar = document.createElement("div");
      bar.setAttribute("role", "tablist");
      const show = (name) => {
        tab = name;
        sessionStorage.setItem("tab", name);
        for (const pane of panes) pane.hidden = plain(pane.dataset.tab) !== name;
        for (const one of bar.children) {
          const on = one.dataset.name === name;
          one.setAttribute("aria-selected", String(on));
          one.tabIndex = on ? 0 : -1;
        }
      };
      for (const pane of panes) {
        const one = document.createElement("button");
        one.type = "button";
        one.setAttribute("role", "tab");
        one.setAttribute("aria-controls", pane.id);
        one.dataset.name = plain(pane.dataset.tab);
        one.textContent = pane.dataset.tab;
        one.addEventListener("click", () => show(one.dataset.name));
        one.addEventListener("keydown", (event) => {
          const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
          if (!step) return;
          event.stopPropagation();
          const next = bar.children[(bar.children.length + [...bar.children].indexOf(one) + step) % bar.children.length];
          show(next.dataset.name);
          next.focus();
        });
        pane.setAttribute("role", "tabpanel");
        bar.append(one);
      }
      box.prepend(bar);
      box.show = show;
      show(panes.some((pane) => plain(pane.dataset.tab) === tab) ? tab : "Reply");
    }
    const made = $("#made");
    if (made) {
      made.textContent = "Being made again …";
      fetch(made.dataset.shown, { headers: { accept: "application/json" } })
        .then(async (answer) => answer.ok ? (await answer.json()).said : await answer.text())
        .then((said) => { made.textContent = `${said[0].toUpperCase()}${said.slice(1)}.`; })
        .catch(() => { made.textContent = ""; });
    }
    $("#beside")?.addEventListener("change", (event) => beside(event.target.value));
  }
  prepareDetail();
  $("#rows [aria-current]")?.scrollIntoView({ block: "nearest" });

  let turn = 0;
  async function open(address, key) {
    const mine = ++turn;
    let nodes;
    try { nodes = await piece(address, "detail"); } catch { return location.assign(address); }
    if (mine !== turn) return;
    const detail = $("#detail");
    detail.replaceChildren(...nodes);
    detail.scrollTop = 0;
    body.classList.add("one");
    history.replaceState(null, "", address);
    for (const row of all("#rows [data-row]")) {
      const on = key ? row.dataset.key === key : row.pathname === new URL(address, location).pathname;
      if (on) row.setAttribute("aria-current", "true"); else row.removeAttribute("aria-current");
      if (on) row.scrollIntoView({ block: "nearest" });
    }
    prepareDetail();
    if (matchMedia("(max-width: 56rem)").matches) { scrollTo(0, 0); if (document.activeElement?.id !== "find") detail.focus({ preventScroll: true }); }
    say(`${$("#opened span:last-child")?.textContent || ""}: ${$("#detail h1")?.textContent || ""}`);
  }
  function beside(name) {
    const url = new URL($("#opened").dataset.link, location);
    url.searchParams.set("beside", name);
    open(url.pathname + url.search);
  }
  $("#rows")?.addEventListener("click", (event) => {
    const row = event.target.closest("a");
    if (!row || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (row.id === "more") more(); else open(row.href, row.dataset.key);
  });
  async function more() {
    const link = $("#more");
    if (!link) return false;
    const nodes = await piece(link.href, "rows");
    link.parentElement.replaceWith(...nodes);
    return true;
  }
  async function step(by) {
    const here = $("#opened");
    if (!here) return;
    const address = by > 0 ? here.dataset.next : here.dataset.previous;
    if (!address) return say(by > 0 ? "This is the last one" : "This is the first one");
    const rows = all("#rows [data-row]");
    const at = rows.findIndex((one) => one.getAttribute("aria-current"));
    if (by > 0 && at === rows.length - 1) await more();
    await open(address);
  }
  document.addEventListener("click", (event) => {
    const one = event.target.closest("#next, #previous, [data-frame]");
    if (!one || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    if (one.dataset.frame !== undefined) large(all("[data-frame]").indexOf(one));
    else step(one.id === "next" ? 1 : -1);
  });

  // -- frames as large as the window

  function large(at) {
    const frames = all("[data-frame]");
    if (!frames.length) return say("No frame was shown");
    const dialog = document.createElement("dialog");
    dialog.className = "large";
    dialog.setAttribute("aria-label", "Frame");
    const picture = document.createElement("img"), line = document.createElement("p"), words = document.createElement("span");
    const button = (text, act) => {
      const one = document.createElement("button");
      one.type = "button"; one.textContent = text; one.addEventListener("click", act);
      return one;
    };
    const show = (to) => {
      at = (to + frames.length) % frames.length;
      picture.src = frames[at].href;
      picture.alt = $("img", frames[at]).alt;
      words.textContent = `${at + 1} of ${frames.length}${$("small", frames[at]) ? `, ${$("small", frames[at]).textContent}` : ""}`;
    };
    line.append(button("‹", () => show(at - 1)), words, button("›", () => show(at + 1)), button("Close", () => dialog.close()));
    dialog.append(picture, line);
    dialog.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (by) { event.preventDefault(); show(at + by); }
      if (event.key === "f") dialog.close();
      event.stopPropagation();
    });
    dialog.addEventListener("close", () => dialog.remove());
    body.append(dialog);
    show(at);
    dialog.showModal();
  }

  // -- keys

  const keys = $("#keys");
  $("#help").addEventListener("click", () => keys.showModal());
  let waits = 0;
  function walk(by) {
    if ($("#opened") && $("#rows")) return step(by);
    const rows = all("[data-row]").filter((one) => one.checkVisibility());
    const at = rows.findIndex((one) => one.classList.contains("at"));
    const to = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + by))];
    if (!to) return;
    rows[at]?.classList.remove("at");
    to.classList.add("at");
    (to.matches("a") ? to : $("a", to))?.focus({ preventScroll: true });
    to.scrollIntoView({ block: "nearest" });
  }
  function only(result) {
    const field = filters?.elements.result;
    if (!field) return;
    field.value = field.value === result ? "" : result;
    sendFilters();
  }
  function cell(by) {
    const cells = all("[data-cell]");
    const at = cells.findIndex((one) => one.getAttribute("aria-current"));
    cells[(at + by + cells.length) % cells.length]?.click();
  }
  const acts = {
    "/": () => $("#find")?.focus(),
    "?": () => keys.showModal(),
    j: () => walk(1),
    k: () => walk(-1),
    w: () => only("wrong"),
    r: () => only("right"),
    m: () => only("missing"),
    f: () => large(0),
    p: () => { const box = $("[data-tabs]"); box?.show(tab === "Prompt" ? "Reply" : "Prompt"); },
    x: () => {
      if ($("#swap")) return $("#swap").click();
      const field = $("#beside");
      if (field) beside(field.options[(field.selectedIndex + 1) % field.options.length].value);
    },
    "[": () => cell(-1),
    "]": () => cell(1),
    y: () => {
      const link = $("#opened") ? new URL($("#opened").dataset.link, location).href : location.href;
      navigator.clipboard?.writeText(link).then(() => say("The link is copied"), () => say(link));
    },
    Escape: () => {
      if (body.classList.contains("one") && matchMedia("(max-width: 56rem)").matches) $(".back")?.click();
    },
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || $("dialog[open]")) return;
    if (event.target.closest("input, select, textarea")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const played = $("[data-player]");
    if (Date.now() - waits < 1500) {
      waits = 0;
      const page = $(`[data-go="${CSS.escape(event.key)}"]`);
      if (page) { event.preventDefault(); return page.click(); }
    }
    if (event.key === "g") { waits = Date.now(); return; }
    if (played && !["?", "y"].includes(event.key)) return; // all other keys are the player's
    if (/^[1-9]$/.test(event.key)) return all("[data-condition]")[event.key - 1]?.click();
    if (acts[event.key]) { event.preventDefault(); acts[event.key](); }
  });
})();
