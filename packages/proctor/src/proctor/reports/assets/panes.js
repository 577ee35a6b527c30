"use strict";
// What every browser of a page shares: filters above, what was found at the left, the chosen one at the right, and
// an address that keeps all of it. Everything shown came from outside, so it makes elements and sets their text; no
// text is ever read as HTML.
const panes = (() => {
  const WINDOW = 120, MARGIN = 40; // rows of the list that exist at once, and those above what is seen
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
    select.dataset.label = label;
    controls.set(name, select);
    return make("div", {}, make("label", { for: `f-${name}` }, label), select);
  }

  function check(name, label) {
    const box = make("input", { type: "checkbox", id: `f-${name}` });
    box.dataset.label = label;
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

  // The search and a chip for each filter that is set; the others stand behind a button.
  function form(label, filters, changed) {
    const search = make("input", { type: "search", id: "f-q", autocomplete: "off", spellcheck: "false" });
    controls.set("q", search);
    const fields = make("fieldset", { class: "fields", "aria-label": "Filters" }, ...filters());
    fields.hidden = true;
    const more = make("button", { type: "button", "aria-expanded": "false" }, "+ filter");
    more.addEventListener("click", () => {
      fields.hidden = !fields.hidden;
      more.setAttribute("aria-expanded", String(!fields.hidden));
    });
    const clear = make("button", { type: "button" }, "Clear filters");
    clear.addEventListener("click", () => { restore(new URLSearchParams()); changed(); });
    const chips = make("div", { class: "chips" });
    const all = make("form", { class: "filters", role: "search" }, make("div", { class: "search" }, make("label", { for: "f-q" }, label), search), chips, fields);

    function chip(name, control) {
      const picked = control.type === "checkbox" ? "" : `: ${control.selectedOptions[0].textContent}`;
      const text = `${control.dataset.label}${picked}`;
      const button = make("button", { type: "button", class: "chip", "aria-label": `Remove the filter ${text}` }, said(text), " ×");
      button.addEventListener("click", () => {
        if (control.type === "checkbox") control.checked = false;
        else control.value = "";
        changed();
        more.focus();
      });
      return button;
    }

    all.refresh = () => {
      const set = [...controls].filter(([name]) => name !== "q" && value(name));
      clear.hidden = !set.length && !value("q");
      more.hidden = !fields.childElementCount;
      chips.replaceChildren(...set.map(([name, control]) => chip(name, control)), more, clear);
    };
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
    const state = { found: [], start: 0, drawn: null };
    const count = make("p", { id: "count", role: "status" });
    const list = make("ol", { class: "list", "aria-label": `${noun[0].toUpperCase()}${noun.slice(1)}s found` });
    const detail = make("article", { class: "detail", id: "detail", tabindex: "-1", "aria-label": `The chosen ${noun}` });

    function entry(item) {
      const { what, beside, dots, thumbnail } = summary(item);
      const line = make("span", { class: "line" }, said(beside, "span", { class: "beside" }), dots || null);
      const button = make("button", { type: "button" }, thumbnail || null, said(what, "span", { class: "what" }), line);
      if (thumbnail) button.className = "pictured";
      button.addEventListener("click", () => choose(item, true));
      item.button = button;
      return make("li", { "aria-setsize": state.found.length, "aria-posinset": state.found.indexOf(item) + 1 }, button);
    }

    const height = () => {
      const row = list.querySelector("li:not(.room)");
      return (row && row.offsetHeight) || 74;
    };

    // The room of rows that are not drawn.
    function room(rows) {
      const empty = make("li", { class: "room", "aria-hidden": "true" });
      empty.style.height = `${rows * height()}px`;
      return empty;
    }

    // Of a long list only the rows around what is seen exist.
    function drawList(again) {
      const first = Math.max(0, Math.floor(list.scrollTop / height()) - MARGIN);
      const start = Math.max(0, Math.min(first, state.found.length - WINDOW));
      if (!again && state.drawn === state.found && Math.abs(start - state.start) < MARGIN / 2) return;
      const focused = list.contains(document.activeElement) ? state.found.find((item) => item.button === document.activeElement) : null;
      for (const item of state.found.slice(state.start, state.start + WINDOW)) delete item.button;
      const shown = state.found.slice(start, start + WINDOW);
      const [above, below] = [room(start), room(state.found.length - start - shown.length)];
      list.replaceChildren(above, ...shown.map(entry), below);
      Object.assign(state, { start, drawn: state.found });
      if (focused && focused.button) focused.button.focus({ preventScroll: true });
      mark();
    }

    // Brings an item's row into the list.
    function reveal(item) {
      const row = state.found.indexOf(item);
      if (row < 0) return;
      const top = row * height();
      if (top < list.scrollTop || top + height() > list.scrollTop + list.clientHeight) list.scrollTop = Math.max(0, top - 60);
      drawList(!item.button);
    }

    function mark() {
      for (const item of state.found.slice(state.start, state.start + WINDOW)) {
        if (item.button) item.button.setAttribute("aria-current", String(item === state.chosen));
      }
    }

    list.addEventListener("scroll", () => drawList(false), { passive: true });

    list.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      const here = state.found.findIndex((item) => item.button && item.button === event.target.closest("button"));
      if (!step || here < 0) return;
      const next = state.found[here + step];
      event.preventDefault();
      if (!next) return;
      reveal(next);
      next.button.focus();
      choose(next, false);
      remember();
    });

    // In the chosen one, left and right go to its neighbours.
    detail.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const next = step && state.found[state.found.indexOf(state.chosen) + step];
      if (!next || event.altKey || event.ctrlKey || event.metaKey || event.target.closest(".wide")) return;
      event.preventDefault();
      reveal(next);
      choose(next, true);
    });

    // A text of more than twelve lines has a button that shows the rest.
    function further(text) {
      if (text.scrollHeight <= text.clientHeight + 2) return;
      const button = make("button", { type: "button", class: "further", "aria-expanded": "false" }, "more");
      button.addEventListener("click", () => {
        const whole = text.classList.toggle("whole");
        button.setAttribute("aria-expanded", String(whole));
        button.textContent = whole ? "less" : "more";
      });
      text.after(button);
    }

    function choose(item, byHand) {
      state.chosen = item;
      mark();
      detail.replaceChildren(...describe(item));
      for (const text of detail.querySelectorAll(".clamp")) further(text);
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
      for (const item of state.found.slice(state.start, state.start + WINDOW)) delete item.button;
      state.found = matching();
      state.start = 0;
      count.textContent = `${state.found.length} of ${items.length} ${noun}${items.length === 1 ? "" : "s"}`;
      filter.refresh();
      if (!stay || !state.found.includes(state.chosen)) state.chosen = state.found[0];
      list.scrollTop = 0;
      drawList(true);
      if (state.chosen) {
        reveal(state.chosen);
        choose(state.chosen, false);
      } else detail.replaceChildren(make("p", { class: "note" }, `No ${noun} fits these filters. Remove one, or clear all.`));
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

    const filter = form(label, filters, changed);
    holder.append(filter, count, make("div", { class: "panes" }, make("div", {}, list), detail));
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
  for (const link of document.querySelectorAll("nav.contents a")) {
    link.addEventListener("click", () => { setTimeout(unfold, 0); });
  }
  addEventListener("hashchange", unfold);
  addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll("details.fold")) fold.open = true;
  });
  unfold();
})();
