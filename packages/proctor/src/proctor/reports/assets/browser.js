// The browser of items and answers: how each answer was scored, what a judge said, and ratings beside scores.
(() => {
  const { make, said, plain, choice, check, value } = panes;
  const holder = document.getElementById("browser");
  if (!holder) return;
  const data = JSON.parse(document.getElementById("data").textContent);
  const OUTCOMES = { right: "✓ right", partly: "~ partly right", wrong: "✗ wrong", unscored: "not scored" };
  const different = (values) => [...new Set(values)];
  const same = (values) => values.map((one) => [one, one]);
  const conditions = different(data.runs.map((run) => run.condition));
  const systems = different(data.runs.map((run) => run.system));
  const baselines = new Set(data.runs.filter((run) => run.baseline).map((run) => run.system));
  const rated = data.ratings || null;

  // -- what counts under the filters

  // Baselines are right or wrong without looking: they count only where somebody asks for them, or where there is
  // nothing else.
  const alone = systems.every((name) => baselines.has(name));
  const counts = (answer) => alone || value("baselines") || !data.runs[answer.run].baseline;

  function words(item) {
    if (item.words === undefined) {
      const parts = [item.id, plain(item.question), plain(item.rationale)];
      for (const option of item.options || []) parts.push(plain(option));
      for (const [text] of item.references || []) parts.push(plain(text));
      for (const answer of item.answers) parts.push(plain(answer.text), rated ? data.runs[answer.run].system : "");
      item.words = parts.join("\n").toLowerCase();
    }
    return item.words;
  }

  // Under the chosen condition, or under any.
  function disagree(item, chosen) {
    return (chosen ? [chosen] : conditions).some((condition) => {
      const ends = item.answers
        .filter((answer) => data.runs[answer.run].condition === condition && counts(answer))
        .map((answer) => answer.outcome);
      return ends.includes("right") && ends.includes("wrong");
    });
  }

  const flagged = (judgement) => judgement !== null && judgement.flags.length > 0;

  const hasFlag = (answer) => (answer.said || []).some(flagged) || (answer.scores || []).some((one) => one.judgement !== undefined && flagged(data.judgements[one.judgement]));

  // Of the answers that count, the share that is wrong.
  function failures(item) {
    const scored = item.answers.filter((answer) => counts(answer) && answer.outcome !== "unscored");
    return scored.length ? scored.filter((answer) => answer.outcome === "wrong").length / scored.length : -1;
  }

  // What the filters leave of ratings and scores: a dimension and metrics by their numbers.
  function view() {
    if (!rated) return null;
    return {
      dimension: value("dimension") ? rated.dimensions.indexOf(value("dimension")) : null,
      metrics: rated.metrics.map((_, number) => number).filter((number) => !value("metric") || rated.metrics[number] === value("metric")),
      system: value("system"),
      gap: value("gap"),
    };
  }

  const seen = (answer, of) => answer.rated.filter(([dimension]) => of.dimension === null || dimension === of.dimension);

  function gaps(answer, of) {
    return seen(answer, of)
      .flatMap(([, , , row]) => of.metrics.map((number) => row[number]))
      .filter((gap) => gap !== null && (!of.gap || (of.gap === "above" ? gap > 0 : gap < 0)));
  }

  function disagreement(answer, of) {
    const found = gaps(answer, of);
    return found.length ? found.reduce((sum, gap) => sum + Math.abs(gap), 0) / found.length : null;
  }

  function shownAnswers(item, of) {
    if (!of) return item.answers;
    return item.answers.filter((answer) => (!of.system || data.runs[answer.run].system === of.system) && seen(answer, of).length);
  }

  // -- the filters

  function filters() {
    const all = data.facets.map(([name, shown, values]) => choice(`facet.${name}`, shown[0].toUpperCase() + shown.slice(1), same(values)));
    if (systems.length > 1) all.push(choice("system", "System", same(systems)));
    if (conditions.length > 1) all.push(choice("condition", "Condition", same(conditions)));
    if (rated) {
      if (rated.dimensions.length > 1) all.push(choice("dimension", "Dimension", same(rated.dimensions), "all"));
      if (rated.metrics.length > 1) all.push(choice("metric", "Metric", same(rated.metrics), "all"));
      all.push(choice("gap", "Score and rating", [["above", "▲ score the higher one"], ["below", "▼ score the lower one"]]));
      all.push(choice("sort", "Sort by", [["", "most disagreement"], ["least", "least disagreement"], ["name", "id"]], ""));
    } else {
      all.push(choice("outcome", "Result", Object.entries(OUTCOMES)));
      all.push(choice("status", "Status", data.statuses.map((name) => [name, name.replace("_", " ")])));
      all.push(choice("sort", "Sort by", [["", "the benchmark's order"], ["failed", "most systems wrong"], ["name", "id"]], ""));
      all.push(check("disagree", "Systems disagree"));
      if (baselines.size && !alone) all.push(check("baselines", "Count baselines"));
    }
    if (anyFlag) all.push(check("flagged", "A judge's rating is flagged"));
    return all;
  }

  function fitting(condition) {
    const [system, outcome, status, flag] = ["system", "outcome", "status", "flagged"].map(value);
    if (!(system || condition || outcome || status || flag)) return null;
    return (answer) => {
      const run = data.runs[answer.run];
      return (!system || run.system === system) && (!condition || run.condition === condition)
        && (!outcome || answer.outcome === outcome) && (!status || answer.status === status)
        && (!flag || hasFlag(answer));
    };
  }

  function sorted(found, of) {
    const by = value("sort");
    if (by === "name") return found.sort((one, other) => (one.id < other.id ? -1 : one.id > other.id ? 1 : 0));
    if (by === "failed") return found.sort((one, other) => failures(other) - failures(one) || one.position - other.position);
    if (!of) return found;
    for (const item of found) {
      const each = shownAnswers(item, of).map((answer) => disagreement(answer, of)).filter((one) => one !== null);
      item.apart = each.length ? Math.max(...each) : null;
    }
    const rank = (item) => (item.apart === null ? -Infinity : (by === "least" ? -1 : 1) * item.apart);
    return found.sort((one, other) => (rank(other) > rank(one) ? 1 : rank(other) < rank(one) ? -1 : one.position - other.position));
  }

  function matching() {
    const sought = panes.sought();
    const facets = data.facets.map(([name]) => [name, value(`facet.${name}`)]).filter(([, wanted]) => wanted);
    const condition = value("condition");
    const of = view();
    const fits = fitting(condition);
    const found = data.items.filter((item) => facets.every(([name, wanted]) => (item.facets[name] || []).includes(wanted))
      && (!fits || item.answers.some(fits))
      && (!of || shownAnswers(item, of).some((answer) => !of.gap || gaps(answer, of).length))
      && (!value("disagree") || disagree(item, condition))
      && sought.every((word) => words(item).includes(word)));
    return sorted(found, of);
  }

  // -- the list: what a question has that others have not, and how the systems answered it

  let shared = null; // the words with which every question begins

  function begin(item) {
    const parts = plain(item.question).split(/\s+/);
    if (shared === null) shared = parts;
    let size = 0;
    while (size < shared.length && shared[size] === parts[size]) size += 1;
    shared = shared.slice(0, size);
  }

  // A beginning is left out where all items have it; where all ask the same, their group tells them apart.
  function differing(item) {
    const text = plain(item.question) || plain((item.answers[0] || {}).text);
    const parts = text.split(/\s+/);
    if (data.items.length < 2 || shared.length < 3) return text;
    return parts.length > shared.length ? `… ${parts.slice(shared.length).join(" ")}` : item.group;
  }

  const DOTS = { right: "●", partly: "◐", wrong: "✕", unscored: "○" };

  // A sign for each system that counts, under the chosen condition or the first one.
  function dots(item) {
    const condition = value("condition") || conditions[0];
    const own = item.answers.filter((answer) => data.runs[answer.run].condition === condition && counts(answer)).slice(0, 12);
    const ends = own.map((answer) => make("span", { class: answer.outcome }, DOTS[answer.outcome]));
    const name = own.map((answer) => `${data.runs[answer.run].system} ${OUTCOMES[answer.outcome]}`).join(", ");
    return ends.length ? make("span", { class: "dots", role: "img", "aria-label": name, title: name }, ...ends) : null;
  }

  function thumbnail(item) {
    const first = (item.pictures || []).find(([, jpeg]) => jpeg);
    return first ? picture(first[1], "") : null;
  }

  function summary(item) {
    const what = differing(item);
    if (rated) return { what, beside: `${item.apart === null || item.apart === undefined ? "no gap to tell" : `disagreement ${item.apart.toFixed(2)}`} · ${item.id}` };
    const group = item.id.startsWith(item.group) || what === item.group ? [] : [item.group];
    return { what, beside: [item.id, ...group, item.format].join(" · "), dots: dots(item), thumbnail: thumbnail(item) };
  }

  // -- one item

  function describe(item) {
    const of = view();
    const parts = [make("h3", {}, said(item.id))];
    parts.push(item.question === undefined ? make("p", { class: "note" }, "The question's text is not at hand.") : said(item.question, "p", { class: "question" }));
    const about = data.facets.filter(([name]) => item.facets[name] && name !== "format").map(([name, shown]) => `${shown}: ${item.facets[name].join(", ")}`);
    const format = item.format ? [`format: ${item.format}`] : [];
    const group = item.group === item.id ? [] : [`group: ${item.group}`];
    parts.push(said([...group, ...format, ...about].join(" · "), "p", { class: "note" }));
    for (const clip of item.clips || []) parts.push(where(clip));
    if (item.strip) parts.push(...strips(item));
    else if (item.pictures) parts.push(...pictures(item.pictures));
    if (item.options) parts.push(options(item));
    else if (item.references && !item.order) parts.push(...references(item.references));
    if (item.rationale) parts.push(line("Why", item.rationale));
    parts.push(...(of ? ratedAnswers(item, of) : answers(item)));
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

  const letter = (position) => String.fromCharCode(65 + position);

  function options(item) {
    const rows = item.options.map((option, position) => {
      const key = (item.keys || []).includes(letter(position));
      return make("li", key ? { class: "key" } : {}, `${letter(position)}. `, said(option), key ? make("span", { class: "right" }, " ✓ key") : null);
    });
    return make("ol", { class: "options" }, ...rows);
  }

  function references(all) {
    if (all.length <= 2) return all.map(([text], position) => line(position ? "Also accepted" : "Reference", text));
    const rows = all.map(([text, note]) => make("li", {}, said(text), note ? said(` (${note})`, "span", { class: "beside" }) : null));
    const box = make("details", { class: "references" }, make("summary", {}, `References (${all.length})`), make("ul", {}, ...rows));
    box.open = all.length <= 6;
    return [box];
  }

  function picture(jpeg, alt) {
    const image = make("img", { alt, loading: "lazy" });
    image.src = `data:image/jpeg;base64,${jpeg}`;
    return image;
  }

  // A picture that takes the whole width when somebody clicks it, and gives it back.
  function frame(jpeg, alt, name) {
    const button = make("button", { type: "button", class: "frame", "aria-pressed": "false", "aria-label": `Enlarge ${name || "the picture"}` }, picture(jpeg, alt));
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
    });
    return button;
  }

  function pictures(all) {
    const shown = all.filter(([, jpeg]) => jpeg).map(([label, jpeg]) => make("figure", {}, frame(jpeg, label || "frame", label), said(label, "figcaption")));
    const absent = all.filter(([, jpeg]) => !jpeg).map(([name]) => name);
    const parts = shown.length ? [make("div", { class: "pictures" }, ...shown)] : [];
    if (absent.length) parts.push(said(`Pictures that are not in this page: ${absent.join(", ")}`, "p", { class: "note" }));
    return parts;
  }

  // An order as a film strip: each label with its picture, where it has one. Where the right order is given, a frame
  // says whether its position is right.
  function strip(item, order, name, right) {
    const known = new Map(item.pictures || []);
    const frames = order.map((label, position) => {
      const fits = right && right[position] === label;
      const figure = make("figure", right ? { class: fits ? "fits" : "off" } : {});
      if (known.has(label)) figure.append(frame(known.get(label), "", label));
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

  // -- its answers, as they were scored

  // Baselines have no words of their own: they stand in the table alone, where there is anybody else.
  function answers(item) {
    const parts = item.answers.length > 1 ? [overview(item)] : [];
    const own = item.answers.filter((answer) => alone || !data.runs[answer.run].baseline);
    if (conditions.length === 1) {
      return [...parts, make("h4", {}, "The answers"), make("div", { class: "cards" }, ...own.map((answer) => card(item, answer, "system")))];
    }
    for (const system of systems) {
      const given = own.filter((answer) => data.runs[answer.run].system === system);
      if (given.length) parts.push(make("h4", {}, said(system)), make("div", { class: "cards" }, ...given.map((answer) => card(item, answer, "condition"))));
    }
    return parts;
  }

  function short(answer) {
    if (answer.status !== "answered") return answer.status.replace("_", " ");
    if (answer.problem) return answer.cut_off ? "cut off" : "unreadable";
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
      const badge = baselines.has(system) ? make("span", { class: "badge" }, "baseline") : null;
      return make("tr", {}, make("th", { scope: "row" }, said(system), badge ? " " : null, badge), ...cells);
    });
    const table = make("table", {}, make("caption", {}, "What each system answered, and whether it was right."), make("thead", {}, head), make("tbody", {}, ...rows));
    return make("div", { class: "wide" }, table);
  }

  function card(item, answer, name) {
    const run = data.runs[answer.run];
    const head = make("h5", {}, said(run[name], "span"), make("span", { class: answer.outcome }, OUTCOMES[answer.outcome]));
    const parts = [head];
    const drawn = answer.order && item.strip;
    if (answer.status !== "answered") parts.push(make("p", { class: "flag" }, answer.status.replace("_", " ")));
    if (answer.cut_off) parts.push(make("p", { class: "flag" }, "cut off by the model's token limit"));
    if (drawn) parts.push(strip(item, answer.order, "Predicted order", item.order));
    if (plain(answer.text)) parts.push(said(answer.text, "p", { class: "text clamp" }));
    if (answer.why !== undefined) parts.push(make("p", { class: "why" }, make("strong", {}, "Rationale: "), said(answer.why)));
    if (answer.other) parts.push(said(answer.other, "p", { class: "beside" }));
    for (const [name, label] of [["read", "Parsed answer"], ["problem", "Not readable"], ["reason", "Because"]]) {
      if (answer[name] !== undefined) parts.push(make("p", { class: "beside" }, `${label}: `, said(answer[name])));
    }
    const spent = [];
    if (answer.seconds !== undefined) spent.push(`${answer.seconds} s`);
    if (answer.tokens) spent.push(`${answer.tokens[0]} tokens in, ${answer.tokens[1]} out`);
    if (spent.length) parts.push(make("p", { class: "beside" }, spent.join(" · ")));
    parts.push(...scores(answer));
    if (answer.shown) {
      const rows = answer.shown.map((option, position) => make("li", {}, `${letter(position)}. `, said(option)));
      parts.push(make("details", {}, make("summary", {}, "Options in the order that the system saw"), make("ol", { class: "options" }, ...rows)));
    }
    if (answer.more) parts.push(make("details", {}, make("summary", {}, "Details"), said(answer.more, "pre")));
    return make("div", { class: drawn ? "card whole" : "card" }, ...parts);
  }

  // The scores as a table, the main one first, then what the judges said who gave them.
  function scores(answer) {
    const given = answer.scores || [];
    const judgements = new Set(given.map((one) => one.judgement).filter((one) => one !== undefined));
    const scorers = [...new Set(given.map((one) => one.scorer))];
    const rows = given.map((one) => {
      const cell = make("td", {}, `${one.value}${one.label ? ` (${one.label})` : ""}`);
      if (scorers.length > 1) cell.append(said(` by ${one.scorer}`, "span", { class: "beside" }));
      return make("tr", {}, make("th", { scope: "row" }, said(one.metric)), cell);
    });
    const parts = [];
    if (rows.length) {
      const caption = scorers.length > 1 ? "Scores" : `Scores by ${scorers[0]}`;
      parts.push(make("table", { class: "scores" }, said(caption, "caption"), make("tbody", {}, ...rows)));
    }
    for (const number of judgements) if (data.judgements[number]) parts.push(judgement(data.judgements[number]));
    return parts;
  }

  function judgement(one) {
    const shown = make("div", { class: "judgement" }, make("strong", {}, "Judge rating by ", said(one.judge)));
    for (const flag of one.flags) shown.append(" ", said(flag.replaceAll("_", " "), "span", { class: "flag" }));
    for (const [name, text] of Object.entries(one.reply)) {
      shown.append(make("div", {}, said(`${name.replaceAll("_", " ")}: `), said(text)));
    }
    return shown;
  }

  // -- its answers, ratings beside scores

  function ratedAnswers(item, of) {
    const shown = shownAnswers(item, of)
      .map((answer) => [disagreement(answer, of), answer])
      .sort((one, other) => (other[0] ?? -1) - (one[0] ?? -1));
    return [make("h4", {}, "The answers"), make("div", { class: "audited" }, ...shown.map(([apart, answer]) => ratedCard(answer, apart, of)))];
  }

  function ratedCard(answer, apart, of) {
    const beside = apart === null ? "" : `disagreement ${apart.toFixed(2)}`;
    const head = make("h5", {}, said(data.runs[answer.run].system, "span"), make("span", { class: "beside" }, beside));
    const text = plain(answer.text) ? said(answer.text, "p", { class: "text clamp" }) : make("p", { class: "note" }, "The answer has no text.");
    return make("div", { class: "card whole" }, head, text, make("p", { class: "beside" }, `length ${answer.length}`), ratings(answer, of), ...(answer.said || []).map(judgement));
  }

  function gap(of) {
    if (of === null) return null;
    if (of === 0) return make("span", { class: "gap" }, "=");
    const size = Math.abs(of);
    const name = `gap ${size < 0.15 ? "small" : of > 0 ? "above" : "below"}`;
    return make("span", { class: name }, `${of > 0 ? "▲" : "▼"} ${size.toFixed(2)}`);
  }

  function ratings(answer, of) {
    const heads = [rated.raters, ...of.metrics.map((number) => rated.metrics[number])];
    const head = make("tr", {}, make("th", { scope: "col" }, "Dimension"), ...heads.map((name) => make("th", { scope: "col" }, said(name))));
    const rows = seen(answer, of).map(([dimension, given, scores, row]) => {
      const cell = make("td", {}, ...given.map(([rater, one]) => make("div", {}, make("strong", {}, String(one)), said(` ${rater}`, "span", { class: "beside" }))));
      const cells = of.metrics.map((number) => {
        if (scores[number] === null) return make("td", {}, make("span", { class: "beside" }, "no score"));
        return make("td", {}, `${Number(scores[number].toPrecision(3))} `, gap(row[number]));
      });
      return make("tr", {}, make("th", { scope: "row" }, rated.dimensions[dimension]), cell, ...cells);
    });
    const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
    return make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Ratings beside scores" }, table);
  }

  // Other filters put other ratings first: what was chosen before is of no more interest.
  function show() {
    panes.browse({
      holder,
      items: data.items,
      noun: "item",
      label: "Words in the question, options, references or answers",
      filters,
      matching,
      summary,
      describe,
      keep: !rated,
    });
  }

  let anyFlag = data.judgements.some(flagged);

  function add(items) {
    for (const item of items) {
      item.position = data.items.push(item) - 1;
      begin(item);
      anyFlag = anyFlag || item.answers.some(hasFlag);
    }
  }

  // Many items come in blocks. Each is opened and read in a task of its own, so that the page can be used meanwhile.
  const blocks = [...document.querySelectorAll("script.block")];
  const reading = make("p", { class: "note", role: "status" }, "Opening the items …");

  async function open(block) {
    const bytes = Uint8Array.from(atob(block.textContent), (character) => character.charCodeAt(0));
    const opened = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const part = await new Response(opened).json();
    for (const [number, one] of Object.entries(part.judgements)) data.judgements[number] = one;
    anyFlag = anyFlag || Object.values(part.judgements).some(flagged);
    add(part.items);
    block.remove();
  }

  async function openAll() {
    for (const [number, block] of blocks.entries()) {
      await open(block);
      reading.textContent = `Opening the items: ${Math.round((100 * (number + 1)) / blocks.length)} %`;
      await new Promise((done) => { setTimeout(done); });
    }
    reading.remove();
    show();
  }

  add(data.items.splice(0));
  if (!blocks.length) {
    show();
    return;
  }
  holder.before(reading);
  if (typeof DecompressionStream === "undefined") {
    reading.textContent = "This web browser is too old to show the items. Open the page in one of 2023 or later.";
    return;
  }
  openAll().catch((error) => { reading.textContent = `The items of this page can't be opened (${error}). Make the report again.`; });
})();
