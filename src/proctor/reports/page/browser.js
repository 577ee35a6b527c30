"use strict";
// The item browser. Everything it shows came from outside (questions, answers, names), so it makes
// elements and sets their text; no text is ever read as HTML.
(() => {
  const PAGE = 50;
  const holder = document.getElementById("browser");
  if (!holder) return;
  const data = JSON.parse(document.getElementById("data").textContent);
  const OUTCOMES = { right: "✓ right", partly: "~ partly right", wrong: "✗ wrong", unmarked: "not marked" };
  const conditions = [...new Set(data.runs.map((run) => run.condition))];
  const systems = [...new Set(data.runs.map((run) => run.system))];
  const state = { page: 0, found: [] };
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

  function words(item) {
    if (item.words === undefined) {
      const parts = [item.id, plain(item.question), plain(item.reference), plain(item.rationale)];
      for (const option of item.options || []) parts.push(plain(option));
      for (const answer of item.answers) parts.push(plain(answer.text));
      item.words = parts.join("\n").toLowerCase();
    }
    return item.words;
  }

  // Under the chosen condition, or under any.
  function disagree(item, chosen) {
    return (chosen ? [chosen] : conditions).some((condition) => {
      const ends = item.answers
        .filter((answer) => data.runs[answer.run].condition === condition)
        .map((answer) => answer.outcome);
      return ends.includes("right") && ends.includes("wrong");
    });
  }

  const flagged = (vote) => vote !== null && vote.flags.length > 0;

  function hasFlag(answer) {
    return (answer.marks || []).some((one) => one.vote !== undefined && flagged(data.votes[one.vote]));
  }

  // -- the filters

  function choice(name, label, entries) {
    const select = make("select", { id: `f-${name}` }, make("option", { value: "" }, "any"));
    for (const [value, text] of entries) select.append(make("option", { value }, text));
    controls.set(name, select);
    return make("div", {}, make("label", { for: `f-${name}` }, label), select);
  }

  function check(name, label) {
    const box = make("input", { type: "checkbox", id: `f-${name}` });
    controls.set(name, box);
    return make("label", { class: "check" }, box, label);
  }

  function filters() {
    const search = make("input", { type: "search", id: "f-q", autocomplete: "off", spellcheck: "false" });
    controls.set("q", search);
    const label = make("label", { for: "f-q" }, "Words in the question, options, reference or answers");
    const form = make("form", { class: "filters", role: "search" }, make("div", { class: "search" }, label, search));
    for (const [name, shown, values] of data.facets) {
      form.append(choice(`facet.${name}`, shown, values.map((value) => [value, value])));
    }
    form.append(choice("system", "With an answer by", systems.map((name) => [name, name])));
    if (conditions.length > 1) form.append(choice("condition", "under", conditions.map((name) => [name, name])));
    form.append(choice("outcome", "that is", Object.entries(OUTCOMES)));
    form.append(choice("status", "with status", data.statuses.map((name) => [name, name.replace("_", " ")])));
    form.append(check("disagree", "Systems disagree"));
    if (data.votes.some(flagged)) form.append(check("flagged", "A judge's vote is flagged"));
    const clear = make("button", { type: "button" }, "Clear filters");
    clear.addEventListener("click", () => { restore(new URLSearchParams()); changed(); });
    form.append(clear);
    let waiting = 0;
    search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(changed, 150); });
    form.addEventListener("change", changed);
    form.addEventListener("submit", (event) => { event.preventDefault(); changed(); });
    return form;
  }

  const value = (name) => {
    const control = controls.get(name);
    if (!control) return "";
    return control.type === "checkbox" ? (control.checked ? "1" : "") : control.value.trim();
  };

  function restore(wanted) {
    for (const [name, control] of controls) {
      const given = wanted.get(name) || "";
      if (control.type === "checkbox") control.checked = given === "1";
      else control.value = given;
      if (control.tagName === "SELECT" && control.selectedIndex < 0) control.value = "";
    }
  }

  function matching() {
    const sought = value("q").toLowerCase().split(/\s+/).filter(Boolean);
    const facets = data.facets.map(([name]) => [name, value(`facet.${name}`)]).filter(([, wanted]) => wanted);
    const [system, condition, outcome, status] = ["system", "condition", "outcome", "status"].map(value);
    const flag = value("flagged");
    const some = system || condition || outcome || status || flag;
    const fits = (answer) => {
      const run = data.runs[answer.run];
      return (!system || run.system === system) && (!condition || run.condition === condition)
        && (!outcome || answer.outcome === outcome) && (!status || answer.status === status)
        && (!flag || hasFlag(answer));
    };
    return data.items.filter((item) => facets.every(([name, wanted]) => (item.facets[name] || []).includes(wanted))
      && (!some || item.answers.some(fits))
      && (!value("disagree") || disagree(item, condition))
      && sought.every((word) => words(item).includes(word)));
  }

  // -- the list

  const count = make("p", { id: "count", role: "status" });
  const list = make("ol", { class: "list", "aria-label": "Items found" });
  const pages = make("div", { class: "pages" });
  const detail = make("article", { class: "detail", id: "detail", tabindex: "-1", "aria-label": "The chosen item" });

  function entry(item) {
    const right = item.answers.filter((answer) => answer.outcome === "right").length;
    const marked = item.answers.filter((answer) => answer.outcome !== "unmarked").length;
    const beside = `${item.id} · ${item.format}` + (marked ? ` · ${right} of ${marked} right` : "");
    const button = make("button", { type: "button" }, said(plain(item.question), "span", { class: "what" }), said(beside, "span", { class: "beside" }));
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

  // -- one item

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
    const parts = [make("h3", {}, said(item.id)), said(item.question, "p", { class: "question" })];
    const facets = data.facets.filter(([name]) => item.facets[name]).map(([name, shown]) => `${shown}: ${item.facets[name].join(", ")}`);
    parts.push(said([`group: ${item.group}`, `format: ${item.format}`, ...facets.filter((one) => !one.startsWith("format: "))].join(" · "), "p", { class: "note" }));
    if (item.strip) parts.push(...strips(item));
    else if (item.pictures) parts.push(pictures(item.pictures));
    if (item.options) parts.push(options(item));
    else if (item.reference !== undefined && !item.order) parts.push(line("Reference", item.reference));
    for (const other of (!item.options && item.accepted) || []) parts.push(line("Also accepted", other));
    if (item.rationale) parts.push(line("Why", item.rationale));
    if (item.answers.length > 1) parts.push(overview(item));
    if (conditions.length === 1) {
      parts.push(make("h4", {}, "The answers"), make("div", { class: "cards" }, ...item.answers.map((answer) => card(item, answer, "system"))));
      return parts;
    }
    for (const system of systems) {
      const given = item.answers.filter((answer) => data.runs[answer.run].system === system);
      if (given.length) parts.push(make("h4", {}, said(system)), make("div", { class: "cards" }, ...given.map((answer) => card(item, answer, "condition"))));
    }
    return parts;
  }

  function line(label, text) {
    const shown = make("p", {}, make("strong", {}, `${label}: `));
    shown.append(said(text));
    return shown;
  }

  const letter = (place) => String.fromCharCode(65 + place);

  function options(item) {
    const rows = item.options.map((option, place) => {
      const key = (item.keys || []).includes(letter(place));
      return make("li", key ? { class: "key" } : {}, `${letter(place)}. `, said(option), key ? make("span", { class: "right" }, " ✓ key") : null);
    });
    return make("ol", { class: "options" }, ...rows);
  }

  function pictures(all) {
    const shown = all.map(([label, jpeg]) => {
      const image = make("img", { alt: label || "frame", loading: "lazy" });
      image.src = `data:image/jpeg;base64,${jpeg}`;
      return make("figure", {}, image, said(label, "figcaption"));
    });
    return make("div", { class: "pictures" }, ...shown);
  }

  // An order as a film strip: each label with its picture, where it has one. Where the right order is given, a frame
  // says whether it stands in its place.
  function strip(item, order, name, right) {
    const known = new Map(item.pictures || []);
    const frames = order.map((label, place) => {
      const fits = right && right[place] === label;
      const figure = make("figure", right ? { class: fits ? "fits" : "off" } : {});
      if (known.has(label)) {
        const image = make("img", { alt: "", loading: "lazy" });
        image.src = `data:image/jpeg;base64,${known.get(label)}`;
        figure.append(image);
      }
      const verdict = right ? make("span", { class: fits ? "right" : "wrong" }, fits ? " ✓" : " ✗") : null;
      figure.append(make("figcaption", {}, said(label), verdict));
      return make("li", {}, figure);
    });
    const list = make("ol", { class: "strip", "aria-label": name }, ...frames);
    list.style.setProperty("--frames", Math.max(1, order.length));
    return make("div", { class: "striped" }, make("p", { class: "beside" }, name), list);
  }

  function strips(item) {
    const shown = [strip(item, item.strip, "As given")];
    if (item.order) shown.push(strip(item, item.order, "True order"));
    return shown;
  }

  function short(answer) {
    if (answer.status !== "answered") return answer.status.replace("_", " ");
    if (answer.problem) return "unreadable";
    const text = plain(answer.read === undefined ? answer.text : answer.read);
    return text.length > 24 ? `${text.slice(0, 23)}…` : text;
  }

  function overview(item) {
    const head = make("tr", {}, make("th", { scope: "col" }, "System"), ...conditions.map((name) => make("th", { scope: "col" }, said(name))));
    const rows = systems.map((system) => {
      const cells = conditions.map((condition) => {
        const answer = item.answers.find((one) => data.runs[one.run].system === system && data.runs[one.run].condition === condition);
        if (!answer) return make("td", {}, "–");
        return make("td", {}, make("span", { class: answer.outcome }, `${OUTCOMES[answer.outcome].slice(0, 1).replace("n", "–")} `), said(short(answer)));
      });
      return make("tr", {}, make("th", { scope: "row" }, said(system)), ...cells);
    });
    const table = make("table", {}, make("caption", {}, "What each system said, and whether it was right."), make("thead", {}, head), make("tbody", {}, ...rows));
    return make("div", { class: "wide" }, table);
  }

  function card(item, answer, name) {
    const run = data.runs[answer.run];
    const head = make("h5", {}, said(run[name], "span"), make("span", { class: answer.outcome }, OUTCOMES[answer.outcome]));
    const parts = [head];
    const drawn = answer.order && item.strip;
    if (answer.status !== "answered") parts.push(make("p", { class: "flag" }, answer.status.replace("_", " ")));
    if (drawn) parts.push(strip(item, answer.order, "Predicted order", item.order));
    if (plain(answer.text)) parts.push(said(answer.text, "p", { class: "text" }));
    if (answer.why !== undefined) parts.push(make("p", { class: "why" }, make("strong", {}, "Rationale: "), said(answer.why)));
    for (const [name, label] of [["read", "Read as"], ["problem", "Not readable"], ["reason", "Because"]]) {
      if (answer[name] !== undefined) parts.push(make("p", { class: "beside" }, `${label}: `, said(answer[name])));
    }
    const spent = [];
    if (answer.seconds !== undefined) spent.push(`${answer.seconds} s`);
    if (answer.tokens) spent.push(`${answer.tokens[0]} tokens in, ${answer.tokens[1]} out`);
    if (spent.length) parts.push(make("p", { class: "beside" }, spent.join(" · ")));
    const votes = new Set();
    const marks = (answer.marks || []).map((one) => {
      if (one.vote !== undefined) votes.add(one.vote);
      return `${one.metric}: ${one.value}${one.label ? ` (${one.label})` : ""}, by ${one.scorer}`;
    });
    if (drawn && marks.length) parts.push(said(marks.join(" · "), "p", { class: "beside" }));
    else for (const mark of marks) parts.push(said(mark, "p", { class: "beside" }));
    for (const place of votes) if (data.votes[place]) parts.push(vote(data.votes[place]));
    if (answer.shown) {
      const rows = answer.shown.map((option, place) => make("li", {}, `${letter(place)}. `, said(option)));
      parts.push(make("details", {}, make("summary", {}, "It saw the options in this order"), make("ol", { class: "options" }, ...rows)));
    }
    if (answer.more) parts.push(make("details", {}, make("summary", {}, "Recorded beside it"), said(answer.more, "pre")));
    return make("div", { class: drawn ? "card whole" : "card" }, ...parts);
  }

  function vote(one) {
    const shown = make("div", { class: "vote" }, make("strong", {}, "Vote of ", said(one.judge)));
    for (const flag of one.flags) shown.append(" ", said(flag.replaceAll("_", " "), "span", { class: "flag" }));
    for (const [name, text] of Object.entries(one.reply)) {
      shown.append(make("div", {}, said(`${name.replaceAll("_", " ")}: `), said(text)));
    }
    return shown;
  }

  // -- together

  function remember() {
    const kept = new URLSearchParams();
    for (const name of controls.keys()) if (value(name)) kept.set(name, value(name));
    if (state.chosen) kept.set("item", state.chosen.id);
    history.replaceState(null, "", `#${kept}`);
  }

  function search() {
    for (const item of state.found) delete item.button;
    state.found = matching();
    state.page = 0;
    count.textContent = `${state.found.length} of ${data.items.length} items`;
    if (!state.found.includes(state.chosen)) state.chosen = state.found[0];
    state.page = Math.max(0, Math.floor(state.found.indexOf(state.chosen) / PAGE));
    drawList();
    if (state.chosen) choose(state.chosen, false);
    else detail.replaceChildren(make("p", { class: "note" }, "No item fits these filters."));
  }

  function changed() {
    search();
    remember();
  }

  function start() {
    const wanted = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
    restore(wanted);
    state.chosen = data.items.find((item) => item.id === wanted.get("item"));
    search();
    if (location.hash.includes("=")) document.getElementById("items").scrollIntoView({ behavior: "instant" });
  }

  holder.append(filters(), count, make("div", { class: "panes" }, make("div", {}, list, pages), detail));
  holder.hidden = false;
  addEventListener("hashchange", () => { if (location.hash.includes("=")) start(); });
  start();
})();
