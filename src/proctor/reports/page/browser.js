// The browser of a store's items and answers.
(() => {
  const { make, said, plain, choice, check, value } = panes;
  const holder = document.getElementById("browser");
  if (!holder) return;
  const data = JSON.parse(document.getElementById("data").textContent);
  const OUTCOMES = { right: "✓ right", partly: "~ partly right", wrong: "✗ wrong", unmarked: "not marked" };
  const conditions = [...new Set(data.runs.map((run) => run.condition))];
  const systems = [...new Set(data.runs.map((run) => run.system))];

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

  function filters() {
    const all = data.facets.map(([name, shown, values]) => choice(`facet.${name}`, shown, values.map((one) => [one, one])));
    all.push(choice("system", "With an answer by", systems.map((name) => [name, name])));
    if (conditions.length > 1) all.push(choice("condition", "under", conditions.map((name) => [name, name])));
    all.push(choice("outcome", "that is", Object.entries(OUTCOMES)));
    all.push(choice("status", "with status", data.statuses.map((name) => [name, name.replace("_", " ")])));
    all.push(check("disagree", "Systems disagree"));
    if (data.votes.some(flagged)) all.push(check("flagged", "A judge's vote is flagged"));
    return all;
  }

  function matching() {
    const sought = panes.sought();
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

  function summary(item) {
    const right = item.answers.filter((answer) => answer.outcome === "right").length;
    const marked = item.answers.filter((answer) => answer.outcome !== "unmarked").length;
    return [plain(item.question), `${item.id} · ${item.format}` + (marked ? ` · ${right} of ${marked} right` : "")];
  }

  // -- one item

  function describe(item) {
    const parts = [make("h3", {}, said(item.id)), said(item.question, "p", { class: "question" })];
    const facets = data.facets.filter(([name]) => item.facets[name]).map(([name, shown]) => `${shown}: ${item.facets[name].join(", ")}`);
    parts.push(said([`group: ${item.group}`, `format: ${item.format}`, ...facets.filter((one) => !one.startsWith("format: "))].join(" · "), "p", { class: "note" }));
    for (const clip of item.clips || []) parts.push(where(clip));
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

  // The only way out of the page: it is followed when somebody asks for it, and tells nobody where it came from.
  function where(clip) {
    const shown = said(clip.text, "p", { class: "note" });
    if (!clip.url || !clip.url.startsWith("https://")) return shown;
    const link = make("a", { target: "_blank", rel: "noopener noreferrer" }, "watch the source from there");
    link.href = clip.url;
    shown.append(" · ", link);
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
    if (answer.other) parts.push(said(answer.other, "p", { class: "beside" }));
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

  panes.browse({
    holder,
    items: data.items,
    noun: "item",
    label: "Words in the question, options, reference or answers",
    filters,
    matching,
    summary,
    describe,
  });
})();
