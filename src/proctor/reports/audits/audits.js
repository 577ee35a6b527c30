// The browser of an audit's questions and answers: ratings beside scores.
(() => {
  const { make, said, plain, choice, value } = panes;
  const holder = document.getElementById("browser");
  if (!holder) return;
  const data = JSON.parse(document.getElementById("data").textContent);
  const LANGUAGES = { en: "English", zh: "Chinese" };
  data.items.forEach((item, place) => { item.place = place; });

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

  const same = (values) => values.map((value) => [value, value]);

  function filters() {
    const all = [];
    const languages = different(data.items.map((item) => item.language));
    if (languages.length > 1) all.push(choice("language", "Language", languages.map((one) => [one, LANGUAGES[one] || one])));
    const datasets = different(data.items.map((item) => item.dataset));
    if (datasets.length > 1) all.push(choice("dataset", "Dataset", same(datasets)));
    if (data.dimensions.length > 1) all.push(choice("dimension", "Dimension", same(data.dimensions), "all"));
    const systems = different(data.items.flatMap((item) => item.answers.map((answer) => answer.system)));
    if (systems.length > 1) all.push(choice("system", "Answers by", same(systems), "all systems"));
    if (data.metrics.length > 1) all.push(choice("metric", "Metric", same(data.metrics), "all"));
    all.push(choice("gap", "Score against rating", [["above", "▲ score the higher one"], ["below", "▼ score the lower one"]]));
    all.push(choice("order", "First", [["", "most disagreement"], ["least", "least disagreement"], ["name", "by name"]], ""));
    return all;
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
    const sought = panes.sought();
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

  function summary(item) {
    const apart = item.apart === null ? "no gap to tell" : `disagreement ${item.apart.toFixed(2)}`;
    return [plain(item.query) || plain(item.answers[0].text) || item.id, `${apart} · ${item.id}`];
  }

  // -- one question

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

  // Other filters put others first: what was chosen before is of no more interest.
  panes.browse({
    holder,
    items: data.items,
    noun: "question",
    label: "Words in the question, references or answers",
    filters,
    matching,
    summary,
    describe,
    keep: false,
  });
})();
