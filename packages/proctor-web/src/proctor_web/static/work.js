/* A page of work: what is said goes from the form's controls into one JSON value, is kept in this browser at once and on
   the server as soon as it answers, and is sealed with a key. Nothing is thrown away before the server has it: each page
   keeps its own, and a later page goes on from it, or offers it where another window has saved since.

   A control has `data-path` (its position in the value) and `data-type`; what a key does stands in `data-key`. */

import { marks } from "./marks.js";

const PAUSE_MS = 500;
const RETRY_MS = 3000;
const IDLE_MS = 60000;
const TYPED = "textarea, select, input:not([type=radio]):not([type=checkbox]):not([type=range]):not([type=hidden])";

const form = document.querySelector("[data-work]");
const words = JSON.parse(form.dataset.words);
const prefix = `proctor ${form.dataset.account} ${form.dataset.form === "new" ? "new " : ""}${form.dataset.item}`;
const drafts = form.dataset.role === "reader";
const state = {
  page: [...crypto.getRandomValues(new Uint8Array(12))].map((one) => one.toString(16).padStart(2, "0")).join(""), number: 0,
  revision: Number(form.dataset.revision), seconds: 0, active: Date.now(), dirty: false, sending: false, sealing: false,
  stopped: form.dataset.open !== "yes",
};

/* ---- the value */

const controls = () => [...form.querySelectorAll("[data-path]")];
const comment = form.querySelector("[data-comment]");

function convert(text, type) {
  return type === "bool" ? text === "true" : type === "number" ? Number(text) : text;
}

function said(one) {
  const type = one.dataset.type;
  if (one.type === "radio") return one.checked ? convert(one.value, type) : undefined;
  if (one.type === "checkbox") return one.checked ? (type === "flag" ? true : one.value) : undefined;
  if (type === "member") return one.value.trim();
  if (!one.value.trim()) return undefined;
  if (type === "json") return JSON.parse(one.value);
  if (type === "list") return one.value.split(",").map((part) => part.trim()).filter(Boolean);
  if (type === "number") return Number.isFinite(Number(one.value)) ? Number(one.value) : one.value;
  return one.value;
}

function read(some) {
  const value = {};
  for (const one of some) {
    const found = said(one);
    if (found === undefined) continue;
    const path = JSON.parse(one.dataset.path);
    const last = path.pop();
    let at = value;
    for (const name of path) at = at[name] ??= {};
    if (one.dataset.type === "member") (at[last] ??= []).push(found); else at[last] = found;
  }
  return trimmed(value);
}

/* Without empty members at the end of lists, and without lists of nothing else. */
function trimmed(value) {
  for (const [name, part] of Object.entries(value)) {
    if (Array.isArray(part)) {
      while (part.length && part.at(-1) === "") part.pop();
      if (!part.length) delete value[name];
    } else if (part && typeof part === "object") trimmed(part);
  }
  return value;
}

const shown = (one) => !one.closest("[data-when][hidden]");
export const payload = () => read(controls().filter(shown));

function write(value) {
  const members = new Map();
  for (const one of controls()) {
    const path = JSON.parse(one.dataset.path);
    const parent = path.slice(0, -1).reduce((at, name) => at?.[name], value);
    let known = parent?.[path.at(-1)];
    if (one.dataset.type === "member" && one.type !== "checkbox") {
      const number = members.get(one.dataset.path) ?? 0;
      members.set(one.dataset.path, number + 1);
      known = known === undefined ? undefined : known[number] ?? "";
    }
    if (parent === undefined && one.dataset.first !== undefined) known = convert(one.dataset.first, one.dataset.type);
    if (one.type === "radio") one.checked = known !== undefined && known === convert(one.value, one.dataset.type);
    else if (one.type === "checkbox") one.checked = one.dataset.type === "flag" ? known === true : Boolean(known?.includes(one.value));
    else if (one.dataset.type === "json") one.value = known === undefined ? "" : JSON.stringify(known);
    else one.value = Array.isArray(known) ? known.join(", ") : known ?? "";
  }
  form.dispatchEvent(new CustomEvent("written"));
  arrange();
}

const chosen = (name) => form.querySelector(`[name="${CSS.escape(name)}"]:checked`)?.value;

function arrange() {
  for (const one of form.querySelectorAll("[data-when]")) {
    one.hidden = !one.dataset.when.split(" ").includes(chosen(one.dataset.of ?? "decision"));
  }
  for (const one of form.querySelectorAll("label.button > input")) one.parentElement.classList.toggle("on", one.checked);
  tellTodo();
}

/* ---- what is still to do: parts of the form that are needed and empty */

const todo = form.querySelector("[data-todo]");
const stepped = form.querySelector("[data-stepped]"); /* set when the first of two steps is submitted */

function given(one) {
  if (one.type === "radio" || one.type === "checkbox") return one.checked;
  if (one.dataset.least) return one.value !== "" && JSON.parse(one.value).length >= Number(one.dataset.least);
  return one.value.trim() !== "";
}

function gaps() {
  const needed = [...form.querySelectorAll("[data-need]")].filter((one) => shown(one));
  return needed.filter((one) => ![...one.querySelectorAll("[data-path], [data-comment]")].some(given));
}

function tellTodo() {
  if (!todo) return;
  const names = new Map();
  for (const { dataset: { need, needs } } of gaps()) names.set(need, [(names.get(need)?.[0] ?? 0) + 1, needs ?? need]);
  const lines = [...names].map(([need, [count, needs]]) => (count > 1 ? `${count} ${needs}` : need));
  todo.textContent = lines.length ? `${words.todo} ${lines.join(", ")}` : words.ready;
  todo.dataset.mood = lines.length ? "" : "good";
}

function toFirstGap() {
  const [gap] = gaps();
  if (!gap) return;
  const fields = [...gap.querySelectorAll("input:not([type=hidden]), textarea, select, [tabindex], button")];
  fields.find((one) => one.getClientRects().length)?.focus({ preventScroll: true });
  gap.scrollIntoView({ block: "center" });
}

/* ---- keeping and sending */

const status = form.querySelector("[data-status]");
const missing = form.querySelector("[data-missing]");

function tell(text, mood = "") {
  status.textContent = text;
  status.dataset.mood = mood;
}

function refuse(message, lines = []) {
  missing.replaceChildren(...[message, ...lines].map((text) => Object.assign(document.createElement("li"), { textContent: text })));
  missing.hidden = false;
}

function snapshot() {
  const value = { version: Number(form.dataset.version), revision: state.revision, payload: payload() };
  return { ...value, comment: comment.value, seconds: state.seconds, page: state.page, number: state.number };
}

const slot = (page = state.page) => `${prefix} ${page}`;

function store(key, kept) {
  try {
    localStorage.setItem(key, JSON.stringify(kept));
  } catch { /* a browser that keeps nothing: the server does */ }
}

function drop(key = slot()) {
  try { localStorage.removeItem(key); } catch { /* there is nothing */ }
}

/* `left` says that the page is gone: another one may go on as it. */
const keep = (left = false) => store(slot(), { ...snapshot(), sealing: state.sealing, at: Date.now(), left });

let timer = 0;
function later(ms) {
  clearTimeout(timer);
  timer = setTimeout(send, ms);
}

export function changed() {
  tellTodo();
  if (state.stopped) { if (form.dataset.open === "yes") keep(); return; }
  state.dirty = true;
  missing.hidden = true;
  keep();
  if (drafts) { tell(words.saving); later(PAUSE_MS); } else tell(words.kept ?? "");
}

const token = () => document.querySelector("meta[name=csrf-token]");

async function post(url, value, keepalive = false) {
  const headers = { "Content-Type": "application/json", "X-CSRF-Token": token().content, "X-Account": form.dataset.account };
  return fetch(url, { method: "POST", headers, body: JSON.stringify(value), keepalive });
}

/* Takes the token of the session that this browser has now, where it is this page's person's own; says whose it is. */
async function renewed() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  const there = new DOMParser().parseFromString(await answer.text(), "text/html");
  const [now, you] = [there, document].map((one) => one.querySelector(".who"));
  if (!now) return tell(words.login, "bad");
  if (now.dataset.account !== form.dataset.account) {
    return tell(words.another.replaceAll("{now}", now.textContent).replaceAll("{you}", you.textContent), "bad");
  }
  token().content = there.querySelector("meta[name=csrf-token]").content;
}

const action = () => (state.sealing ? { reader: "seal", adjudicator: "adjudicate", author: "new" }[form.dataset.role] : "draft");

async function send() {
  if (state.sending || state.stopped || !(state.dirty || state.sealing)) return;
  Object.assign(state, { sending: true, dirty: false, number: state.number + 1 });
  keep();
  const sent = snapshot();
  let answer = null;
  try {
    answer = await post(`/item/${form.dataset.item}/${action()}`, sent);
    await received(answer, sent);
  } catch {
    tell(state.sealing ? words.waiting : words.offline, "bad");
    state.dirty = true;
    later(RETRY_MS);
  } finally {
    state.sending = false;
  }
  if (state.dirty && answer?.ok) later(PAUSE_MS);
}

async function received(answer, sent) {
  if (answer.ok) {
    const reply = await answer.json();
    state.seconds -= sent.seconds;
    if (reply.next !== undefined) return done(reply.next);
    state.revision = reply.revision;
    if (state.sealing) later(0);
    else if (state.dirty) keep();
    else { drop(); tell(words.saved, "good"); }
    if (stepped?.value && !state.dirty) { state.stopped = true; location.reload(); }
    return;
  }
  if (answer.status === 401 || answer.status === 403) {
    await renewed();
    state.dirty = true;
    later(RETRY_MS);
    return;
  }
  if (answer.status === 429 || answer.status >= 500) throw new Error("the server could not");
  const reply = await answer.json();
  state.sealing = false;
  state.stopped = answer.status !== 422;
  if (stepped) stepped.value = "";
  keep();
  refuse(reply.message, reply.missing);
  tell("");
  toFirstGap();
}

function done(next) {
  state.stopped = true;
  drop();
  location.assign(next);
}

function seal() {
  if (state.stopped) return;
  missing.hidden = true;
  Object.assign(state, { sealing: true, dirty: true });
  keep();
  later(0);
}

/* Submits the first of two steps: the server keeps it as final, and then shows the second. */
function step() {
  if (state.stopped) return;
  missing.hidden = true;
  stepped.value = "true";
  state.dirty = true;
  keep();
  later(0);
}

/* ---- what pages before this one kept in this browser */

const offer = form.querySelector("[data-offer]");
let offered = [];

function found() {
  try {
    const known = Object.entries(localStorage).filter(([key]) => key === prefix || key.startsWith(slot("")));
    return known.map(([key, text]) => [key, JSON.parse(text)]).sort((one, other) => (other[1].at ?? 0) - (one[1].at ?? 0));
  } catch { return []; /* a browser that keeps nothing */ }
}

/* Whether it was said after what the server has, with nothing of another window between. */
function follows(kept) {
  if (state.stopped || kept.offered || kept.version !== Number(form.dataset.version)) return false;
  const own = kept.page && kept.page === form.dataset.page && kept.number >= Number(form.dataset.number);
  return own || kept.revision === state.revision;
}

/* Goes on from what follows the server's state, and offers what differs from it. */
function restore() {
  const saved = JSON.stringify([payload(), comment.value.trim()]);
  let next = null;
  for (const [key, kept] of found()) {
    const same = JSON.stringify([kept.payload, kept.comment.trim()]) === saved;
    const goes = !next && follows(kept);
    if (same && !(goes && kept.sealing)) drop(key);
    else if (goes) next = [key, kept];
    else offered.push([key, kept]);
  }
  if (next) goOn(...next);
  for (const [key, kept] of offered) store(key, { ...kept, offered: true });
  show();
}

function goOn(key, kept) {
  if (kept.left) Object.assign(state, { page: kept.page, number: kept.number });
  if (kept.left || kept.revision === state.revision) state.seconds = kept.seconds;
  write(kept.payload);
  comment.value = kept.comment;
  tell(words.restored, "good");
  state.dirty = true;
  state.sealing = Boolean(kept.sealing) && drafts;
  keep();
  if (key !== slot()) drop(key);
  if (drafts) later(0);
}

const texts = (value) => (typeof value === "string" ? [value] : value && typeof value === "object" ? Object.values(value).flatMap(texts) : []);

function show() {
  offer.hidden = !offered.length;
  if (!offered.length) return;
  const [, kept] = offered[0];
  offer.querySelector("p").textContent = [...texts(kept.payload), kept.comment].filter(Boolean).join("\n");
  offer.querySelector("[data-swap]").disabled = state.stopped;
}

/* Takes what is offered, and offers what was shown. */
function swap() {
  if (state.stopped) return;
  const [key, kept] = offered[0];
  const here = { ...kept, payload: payload(), comment: comment.value };
  write(kept.payload);
  comment.value = kept.comment;
  offered[0] = [key, here];
  store(key, { ...here, offered: true });
  changed();
  show();
}

function discard() {
  drop(offered.shift()[0]);
  show();
}

/* ---- how guessable the text is */

const guess = form.querySelector("[data-guess]");
let asked = 0;
let pause = 0;

function living() {
  if (!guess) return;
  clearTimeout(pause);
  pause = setTimeout(async () => {
    const number = ++asked;
    const root = form.dataset.form === "new" ? "" : "edited";
    const some = controls().filter((one) => JSON.parse(one.dataset.path)[0] === root || !root);
    const value = read(some);
    const text = root ? value.edited ?? {} : value;
    const answer = await post(guess.dataset.guess, { text: { stem: "", ...text } }).catch(() => null);
    if (answer?.ok && number === asked) guess.innerHTML = await answer.text();
  }, 250);
}

/* ---- keys and clicks */

function toggle(key) {
  const group = form.querySelector(`[data-toggle="${CSS.escape(key)}"]`);
  if (!group) return false;
  const [yes, no] = group.querySelectorAll("input");
  (yes.checked ? no : yes).click();
  return true;
}

function rate(key) {
  const some = [...form.querySelectorAll("[data-rated]")].filter(usable);
  const open = document.activeElement?.closest?.("[data-rated]") ?? some.find((one) => !one.querySelector(":checked")) ?? some.at(-1);
  const choice = open?.querySelector(`[data-level="${CSS.escape(key)}"]`);
  if (!choice) return false;
  choice.click();
  if (!choice.dataset.opens) document.activeElement?.blur?.();
  some.find((one) => !one.querySelector(":checked"))?.scrollIntoView({ block: "nearest" });
  return true;
}

const usable = (one) => one.getClientRects().length > 0 && !one.matches(":disabled") && !one.closest("fieldset:disabled");

function press(key) {
  const one = [...document.querySelectorAll("[data-key]")].find((each) => each.dataset.key === key && usable(each.type ? each.closest("label") ?? each : each));
  if (!one) return form.dataset.open === "yes" && (toggle(key) || rate(key));
  if (one.matches(TYPED)) one.focus(); else one.click();
  return true;
}

document.addEventListener("keydown", (event) => {
  if (document.querySelector("dialog[open]")) return;
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    if (form.querySelector("[data-step]")) step(); else seal();
    return;
  }
  if (event.target.closest?.(TYPED)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
  if (event.key === "Enter" && event.target.closest?.("a, button, summary, [data-frame]")) return;
  if (press(event.key)) { event.preventDefault(); event.stopImmediatePropagation(); }
}, true);

/* The keys of this page, read off its controls. */
function keySheet() {
  const sheet = document.querySelector("[data-keysheet]");
  const label = (one) => {
    const [here] = one.matches(TYPED) || !one.textContent.trim() ? one.labels ?? [] : [one];
    const copy = (here ?? one.closest("label") ?? one).cloneNode(true);
    for (const kbd of copy.querySelectorAll("kbd")) kbd.remove();
    return one.getAttribute("aria-label") ?? one.querySelector("img")?.alt ?? copy.textContent.trim();
  };
  const keys = new Map();
  for (const one of document.querySelectorAll("[data-key], [aria-keyshortcuts], [data-toggle], [data-level]")) {
    const key = one.dataset.key ?? one.getAttribute("aria-keyshortcuts") ?? one.dataset.toggle ?? one.dataset.level;
    if (!key || !usable(one.type ? one.closest("label") ?? one : one)) continue;
    keys.set(key, keys.has(key) ? keys.get(key) : label(one.dataset.level ? one.closest("label") : one));
  }
  const row = ([key, text]) => {
    const term = document.createElement("dt");
    term.append(Object.assign(document.createElement("kbd"), { textContent: key }));
    return [term, Object.assign(document.createElement("dd"), { textContent: text })];
  };
  sheet.querySelector("dl").replaceChildren(...[...keys].flatMap(row));
  sheet.showModal();
}

async function player() {
  const root = document.querySelector("[data-player]");
  return root ? (await import("./player.js")).playerOf(root) : null;
}

document.addEventListener("click", async (event) => {
  const one = event.target.closest?.("[data-seek], [data-take], [data-moment], [data-seal], [data-step], [data-keys], [data-swap], [data-discard]");
  if (!one) return;
  if (one.dataset.seek !== undefined) (await player())?.seek(Number(one.dataset.seek));
  else if (one.dataset.moment !== undefined) {
    const at = await player();
    if (at) { form.querySelector(`#${one.dataset.moment}`).value = at.times.time(at.frame).toFixed(3); changed(); }
  } else if (one.dataset.take !== undefined) { write(JSON.parse(one.dataset.take)); changed(); }
  else if (one.dataset.swap !== undefined) swap();
  else if (one.dataset.discard !== undefined) discard();
  else if (one.dataset.step !== undefined) step();
  else if (one.dataset.keys !== undefined) keySheet();
  else seal();
});

form.addEventListener("change", (event) => {
  const one = event.target;
  if (one.dataset.checks && one.checked) {
    for (const yes of form.querySelectorAll("[data-toggle]")) if (!yes.querySelector(":checked")) yes.querySelector("input").checked = true;
    changed();
  }
  arrange();
  if (one.dataset.opens && one.checked) form.querySelector(`#${CSS.escape(one.dataset.opens)}`)?.focus();
});
form.addEventListener("input", (event) => {
  if (event.target.dataset.nothing !== undefined && event.target.checked) form.dispatchEvent(new CustomEvent("nothing"));
  if (event.target.dataset.clears && event.target.checked) form.querySelector("[data-nothing]").checked = false;
  arrange();
  changed();
  if (event.target.dataset.first !== undefined || event.target.name === "key") living();
});
form.addEventListener("nothing", () => {
  for (const one of form.querySelectorAll("[data-clears]")) one.checked = false;
});
form.addEventListener("submit", (event) => event.preventDefault());

for (const name of ["keydown", "pointerdown", "pointermove"]) document.addEventListener(name, () => { state.active = Date.now(); }, { passive: true });
setInterval(() => {
  if (document.visibilityState === "visible" && Date.now() - state.active < IDLE_MS) state.seconds += 1;
}, 1000);
addEventListener("online", () => later(0));
addEventListener("pagehide", () => {
  if (state.stopped || !(state.dirty || state.sending)) return;
  state.number += 1;
  if (drafts && !state.sealing) post(`/item/${form.dataset.item}/draft`, snapshot(), true).catch(() => {});
  keep(true);
});
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

marks(form, { player, changed });
write(JSON.parse(form.dataset.payload));
restore();
living();
form.dataset.ready = "yes";
