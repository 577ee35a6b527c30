"use strict";
// The browser of an audit. Everything it shows came from outside (questions, answers, names), so it makes
// elements and sets their text; no text is ever read as HTML.
(() => {
  const PAGE = 50;
  const holder = document.getElementById("browser");
  if (!holder) return;
  const data = JSON.parse(document.getElementById("data").textContent);
  const LANGUAGES = { en: "English", zh: "Chinese" };
  const state = { page: 0, found: [] };
  const controls = new Map();
  data.items.forEach((item, place) => { item.place = place; });

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

  function words(item) {
    if (item.words === undefined) {
      const parts = [item.id, plain(item.query)];
      for (const [text] of item.references || []) parts.push(plain(text));
      for (const answer of item.answers) parts.push(answer.system, plain(answer.text));
      item.words = parts.join("\n").toLowerCase();
    }
    return item.words;
  }

  // -- the filters

  const different = (values) => [...new Set(values)].sort();

  function choice(name, label, entries, any = "any") {
    const select = make("select", { id: `f-${name}` }, any ? make("option", { value: "" }, any) : null);
    for (const [value, text] of entries) select.append(make("option", { value }, text));
    controls.set(name, select);
    return make("div", {}, make("label", { for: `f-${name}` }, label), select);
  }

  const same = (values) => values.map((value) => [value, value]);

  function filters() {
    const search = make("input", { type: "search", id: "f-q", autocomplete: "off", spellcheck: "false" });
    controls.set("q", search);
    const label = make("label", { for: "f-q" }, "Words in the question, references or answers");
    const form = make("form", { class: "filters", role: "search" }, make("div", { class: "search" }, label, search));
    const languages = different(data.items.map((item) => item.language));
    if (languages.length > 1) form.append(choice("language", "Language", languages.map((one) => [one, LANGUAGES[one] || one])));
    const datasets = different(data.items.map((item) => item.dataset));
    if (datasets.length > 1) form.append(choice("dataset", "Dataset", same(datasets)));
    if (data.dimensions.length > 1) form.append(choice("dimension", "Dimension", same(data.dimensions), "all"));
    const systems = different(data.items.flatMap((item) => item.answers.map((answer) => answer.system)));
    if (systems.length > 1) form.append(choice("system", "Answers by", same(systems), "all systems"));
    if (data.metrics.length > 1) form.append(choice("metric", "Metric", same(data.metrics), "all"));
    form.append(choice("gap", "Score against rating", [["above", "▲ score the higher one"], ["below", "▼ score the lower one"]]));
    form.append(choice("order", "First", [["", "most disagreement"], ["least", "least disagreement"], ["name", "by name"]], ""));
    const clear = make("button", { type: "button" }, "Clear filters");
    clear.addEventListener("click", () => { restore(new URLSearchParams()); changed(); });
    form.append(clear);
    let waiting = 0;
    search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(changed, 150); });
    form.addEventListener("change", changed);
    form.addEventListener("submit", (event) => { event.preventDefault(); changed(); });
    return form;
  }

  const value = (name) => (controls.has(name) ? controls.get(name).value.trim() : "");

  function restore(wanted) {
    for (const [name, control] of controls) {
      control.value = wanted.get(name) || "";
      if (control.tagName === "SELECT" && control.selectedIndex < 0) control.value = "";
    }
  }

  // What the filters leave of marks: a dimension and metrics by their numbers.
  function view() {
    return {
      dimension: value("dimension") ? data.dimensions.indexOf(value("dimension")) : null,
      metrics: data.metrics.map((_, place) => place).filter((place) => !value("metric") || data.metrics[place] === value("metric")),
      system: value("system"),
      gap: value("gap"),
    };
  }

  const seen = (answer, of) => answer.marks.filter(([dimension]) => of.dimension === null || dimension === of.dimension);

  function gaps(answer, of) {
    return seen(answer, of)
      .flatMap(([, , , row]) => of.metrics.map((place) => row[place]))
      .filter((gap) => gap !== null && (!of.gap || (of.gap === "above" ? gap > 0 : gap < 0)));
  }

  function disagreement(answer, of) {
    const found = gaps(answer, of);
    return found.length ? found.reduce((sum, gap) => sum + Math.abs(gap), 0) / found.length : null;
  }

  const answers = (item, of) => item.answers.filter((answer) => (!of.system || answer.system === of.system) && seen(answer, of).length);

  function matching() {
    const sought = value("q").toLowerCase().split(/\s+/).filter(Boolean);
    const [language, dataset, order] = ["language", "dataset", "order"].map(value);
    const of = view();
    const found = data.items.filter((item) => (!language || item.language === language)
      && (!dataset || item.dataset === dataset)
      && answers(item, of).some((answer) => !of.gap || gaps(answer, of).length)
      && sought.every((word) => words(item).includes(word)));
    for (const item of found) {
      const each = answers(item, of).map((answer) => disagreement(answer, of)).filter((one) => one !== null);
      item.apart = each.length ? Math.max(...each) : null;
    }
    const sign = order === "least" ? -1 : 1;
    if (order === "name") return found.sort((one, other) => (one.id < other.id ? -1 : one.id > other.id ? 1 : 0));
    const rank = (item) => (item.apart === null ? -Infinity : sign * item.apart);
    return found.sort((one, other) => (rank(other) > rank(one) ? 1 : rank(other) < rank(one) ? -1 : one.place - other.place));
  }

  // -- the list

  const count = make("p", { id: "count", role: "status" });
  const list = make("ol", { class: "list", "aria-label": "Questions found" });
  const pages = make("div", { class: "pages" });
  const detail = make("article", { class: "detail", id: "detail", tabindex: "-1", "aria-label": "The chosen question" });

  function entry(item) {
    const shown = plain(item.query) || plain(item.answers[0].text) || item.id;
    const apart = item.apart === null ? "no gap to tell" : `disagreement ${item.apart.toFixed(2)}`;
    const button = make("button", { type: "button" }, said(shown, "span", { class: "what" }), said(`${apart} · ${item.id}`, "span", { class: "beside" }));
    button.addEventListener("click", () => choose(item, true));
    item.button = button;
    return make("li", {}, button);
  }

  function turn(step, label, last) {
    const button = make("button", { type: "button" }, label);
    button.disabled = state.page + step < 0 || state.page + step > last;
    button.addEventListener("click", () => { state.page += step; drawList(); });
    return button;
  }

  function drawList() {
    const start = state.page * PAGE;
    const shown = state.found.slice(start, start + PAGE);
    const last = Math.max(0, Math.ceil(state.found.length / PAGE) - 1);
    list.replaceChildren(...shown.map(entry));
    list.scrollTop = 0;
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
    if (next) next.firstElementChild.focus();
    event.preventDefault();
  });

  // -- one question

  function choose(item, byHand) {
    state.chosen = item;
    mark();
    detail.replaceChildren(...describe(item));
    if (!byHand) return;
    remember();
    if (matchMedia("(max-width: 46rem)").matches) detail.scrollIntoView();
    detail.focus({ preventScroll: true });
  }

  function describe(item) {
    const of = view();
    const parts = [make("h3", {}, said(item.id))];
    parts.push(item.query === undefined ? make("p", { class: "note" }, "The question's text is not at hand.") : said(item.query, "p", { class: "question" }));
    const about = [item.dataset, LANGUAGES[item.language] || item.language].filter(Boolean);
    if (item.group !== item.id) about.push(`group: ${item.group}`);
    if (about.length) parts.push(said(about.join(" · "), "p", { class: "note" }));
    if (item.images) parts.push(...pictures(item.images));
    if (item.references) parts.push(references(item.references));
    parts.push(make("h4", {}, "The answers"));
    const shown = answers(item, of)
      .map((answer) => [disagreement(answer, of), answer])
      .sort((one, other) => (other[0] ?? -1) - (one[0] ?? -1));
    parts.push(make("div", { class: "audited" }, ...shown.map(([apart, answer]) => card(answer, apart, of))));
    return parts;
  }

  function pictures(all) {
    const shown = all.filter(([, jpeg]) => jpeg).map(([name, jpeg]) => {
      const image = make("img", { alt: name, loading: "lazy" });
      image.src = `data:image/jpeg;base64,${jpeg}`;
      return make("figure", {}, image, said(name, "figcaption"));
    });
    const absent = all.filter(([, jpeg]) => !jpeg).map(([name]) => name);
    const parts = shown.length ? [make("div", { class: "pictures" }, ...shown)] : [];
    if (absent.length) parts.push(said(`Pictures that are not in this page: ${absent.join(", ")}`, "p", { class: "note" }));
    return parts;
  }

  function references(all) {
    const rows = all.map(([text, frequency, completeness]) => {
      const beside = [];
      if (frequency !== null) beside.push(`frequency ${frequency}`);
      if (completeness !== null) beside.push(`completeness ${completeness}`);
      return make("li", {}, said(text), beside.length ? make("span", { class: "beside" }, ` (${beside.join(", ")})`) : null);
    });
    const box = make("details", { class: "references" }, make("summary", {}, `References (${all.length})`), make("ul", {}, ...rows));
    box.open = all.length <= 6;
    return box;
  }

  function card(answer, apart, of) {
    const beside = apart === null ? "" : `disagreement ${apart.toFixed(2)}`;
    const head = make("h5", {}, said(answer.system, "span"), make("span", { class: "beside" }, beside));
    const text = plain(answer.text) ? said(answer.text, "p", { class: "text" }) : make("p", { class: "note" }, "The answer has no text.");
    return make("div", { class: "card whole" }, head, text, make("p", { class: "beside" }, `length ${answer.length}`), marks(answer, of));
  }

  function gap(of) {
    if (of === null) return null;
    if (of === 0) return make("span", { class: "gap" }, "=");
    const size = Math.abs(of);
    const name = `gap ${size < 0.15 ? "small" : of > 0 ? "above" : "below"}`;
    return make("span", { class: name }, `${of > 0 ? "▲" : "▼"} ${size.toFixed(2)}`);
  }

  function marks(answer, of) {
    const heads = [data.raters, ...of.metrics.map((place) => data.metrics[place])];
    const head = make("tr", {}, make("th", { scope: "col" }, "Dimension"), ...heads.map((name) => make("th", { scope: "col" }, said(name))));
    const rows = seen(answer, of).map(([dimension, ratings, scores, row]) => {
      const rated = make("td", {}, ...ratings.map(([rater, given]) => make("div", {}, make("strong", {}, String(given)), said(` ${rater}`, "span", { class: "beside" }))));
      const cells = of.metrics.map((place) => {
        if (scores[place] === null) return make("td", {}, make("span", { class: "beside" }, "no score"));
        return make("td", {}, `${Number(scores[place].toPrecision(3))} `, gap(row[place]));
      });
      return make("tr", {}, make("th", { scope: "row" }, data.dimensions[dimension]), rated, ...cells);
    });
    const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
    return make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Ratings beside scores" }, table);
  }

  // -- together

  function remember() {
    const kept = new URLSearchParams();
    for (const name of controls.keys()) if (value(name)) kept.set(name, value(name));
    if (state.chosen) kept.set("item", state.chosen.id);
    history.replaceState(null, "", `#${kept}`);
  }

  function search(keep) {
    for (const item of state.found) delete item.button;
    state.found = matching();
    count.textContent = `${state.found.length} of ${data.items.length} questions`;
    if (!keep || !state.found.includes(state.chosen)) state.chosen = state.found[0];
    state.page = Math.max(0, Math.floor(state.found.indexOf(state.chosen) / PAGE));
    drawList();
    if (state.chosen) choose(state.chosen, false);
    else detail.replaceChildren(make("p", { class: "note" }, "No question fits these filters."));
  }

  function changed() {
    search(false);
    remember();
  }

  function start() {
    const wanted = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
    restore(wanted);
    state.chosen = data.items.find((item) => item.id === wanted.get("item"));
    search(true);
    if (location.hash.includes("=")) document.getElementById("items").scrollIntoView({ behavior: "instant" });
  }

  holder.append(filters(), count, make("div", { class: "panes" }, make("div", {}, list, pages), detail));
  holder.hidden = false;
  addEventListener("hashchange", () => { if (location.hash.includes("=")) start(); });
  start();
})();
