/* Exact video. A <video> shows motion; whenever time stands still, the frame store's own JPEG lies over it: the picture
   with the presentation timestamp that was asked for, never one found by time × frame rate.

   The table of timestamps is the server's. Played, a picture is at (its timestamp − the first) × time base after the
   first one, so the media time that the browser reports with each picture it presents says which picture that is. */

const PREFETCHED = 16;
const RATES = [0.1, 0.25, 0.5, 1, 1.5, 2, 4];
const RETRY_MS = 2000;
const TYPED = "input:not([type=range]), textarea, select, [contenteditable]";

const players = new WeakMap();

/* The player of an element with data-player, once it is ready. */
export function playerOf(root) {
  if (!players.has(root)) players.set(root, Player.open(root));
  return players.get(root);
}

/* Seconds as hours, minutes, seconds and milliseconds. */
export function clockText(seconds) {
  const ms = Math.max(0, Math.round(seconds * 1000));
  const two = (value) => String(value).padStart(2, "0");
  const [h, m, s] = [Math.floor(ms / 3600000), Math.floor(ms / 60000) % 60, Math.floor(ms / 1000) % 60];
  return `${two(h)}:${two(m)}:${two(s)}.${String(ms % 1000).padStart(3, "0")}`;
}

/* Which picture is when. A frame is the index of a picture, from 0; times are seconds of the item's clock, played ones
   count from the first picture, which is at the video's second `lead`. */
export class FrameTimes {
  constructor(table) {
    const [top, bottom] = table.time_base;
    this.first = BigInt(table.first);
    this.origin = table.origin;
    this.lead = 0;
    this.ticks = new Float64Array(table.steps.length + 1);
    this.played = new Float64Array(this.ticks.length);
    table.steps.forEach((step, k) => { this.ticks[k + 1] = this.ticks[k] + step; });
    this.ticks.forEach((tick, k) => { this.played[k] = tick * top / bottom; });
    this.last = this.played.length - 1;
  }

  pts(frame) { return (this.first + BigInt(this.ticks[frame])).toString(); }

  time(frame) { return this.origin + this.played[frame]; }

  /* The last picture that begins at or before a played time, which may be off by rounding. */
  under(played) {
    let [low, high] = [0, this.last];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.played[middle] <= played + 1e-6) low = middle; else high = middle - 1;
    }
    return low;
  }

  /* The picture that a browser presents, by its media time: the picture's own time, which may be rounded down, or
     after a seek, in Firefox, the one sought. */
  presented(mediaTime) {
    const played = mediaTime - this.lead;
    const frame = this.under(played);
    if (frame === this.last) return frame;
    const [begin, end] = [this.played[frame], this.played[frame + 1]];
    return played - begin > 0.75 * (end - begin) ? frame + 1 : frame;
  }

  at(time) { return this.under(time - this.origin); }

  frameOf(pts) {
    const tick = Number(BigInt(pts) - this.first);
    let [low, high] = [0, this.last];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ticks[middle] < tick) low = middle + 1; else high = middle;
    }
    return this.ticks[low] === tick ? low : -1;
  }

  /* The video's second well inside a picture's own time, so that no rounding leads to its neighbour. */
  inside(frame) {
    if (frame < this.last) return this.lead + (this.played[frame] + this.played[frame + 1]) / 2;
    return this.lead + this.played[frame] + (frame ? Math.min(0.005, (this.played[frame] - this.played[frame - 1]) / 2) : 0);
  }
}

/* Shows one clip. Sends "frame" to its element for each picture that appears: detail {frame, pts, time, exact}. */
export class Player {
  static async open(root) {
    for (;;) {
      try {
        const answer = await fetch(`${root.dataset.media}/timestamps`);
        if (answer.ok) return new Player(root, await answer.json());
        if (answer.status < 500) throw new Error(`no media: ${answer.status}`);
      } catch (error) {
        if (!(error instanceof TypeError)) throw error;
      }
      say(root, "lost");
      await pause(RETRY_MS);
    }
  }

  constructor(root, table) {
    this.root = root;
    this.table = table;
    this.times = new FrameTimes(table);
    this.clip = [this.times.at(table.start), Math.max(this.times.at(table.start), this.times.at(table.end - 2e-6))];
    this.loop = [...this.clip];
    this.looping = false;
    this.rate = 1;
    this.moving = 0; /* 0: still; 1: by the video; 2: picture by picture, also backwards */
    this.asShown = false;
    this.wanted = this.frame = this.clip[0];
    this.pictures = new Map();
    this.turn = 0;
    this.build();
    this.listen();
    if (table.plays) this.load();
    this.show(this.frame);
  }

  build() {
    const stage = this.part("stage");
    const { width, height, region } = this.table;
    const part = region ?? { x: 0, y: 0, width: 1, height: 1 };
    this.video = document.createElement("video");
    Object.assign(this.video, { muted: true, playsInline: true, preload: "auto", disablePictureInPicture: true });
    Object.assign(this.video.style, {
      width: `${100 / part.width}%`, height: `${100 / part.height}%`,
      left: `${-100 * part.x / part.width}%`, top: `${-100 * part.y / part.height}%`,
    });
    stage.style.setProperty("--shape", String((width * part.width) / (height * part.height)));
    this.image = new Image();
    this.image.hidden = true;
    this.image.alt = "";
    stage.prepend(this.video, this.image);
    const position = this.part("position");
    if (position) Object.assign(position, { min: this.clip[0], max: this.clip[1], step: 1 });
    say(this.root, "");
  }

  part(name) { return this.root.querySelector(`[data-part="${name}"]`); }

  /* The video may still be being made: until it is there, pictures are shown one by one. */
  async load() {
    const address = `${this.root.dataset.media}/video`;
    for (;;) {
      try {
        const answer = await fetch(address, { method: "HEAD" });
        if (answer.status === 200) {
          this.times.lead = Number(answer.headers.get("Playback-Lead") ?? 0);
          break;
        }
        if (answer.status >= 400 && answer.status < 500) return;
      } catch (error) {
        if (!(error instanceof TypeError)) throw error;
      }
      await pause(RETRY_MS);
      if (!this.root.isConnected) return;
    }
    this.video.addEventListener("loadeddata", () => {
      this.root.dataset.video = "ready";
      if (this.moving !== 1) this.video.currentTime = this.times.inside(this.frame);
    }, { once: true });
    this.video.src = address;
  }

  get ready() { return this.root.dataset.video === "ready"; }

  /* -- standing still */

  /* Shows a picture: by its own JPEG, when that is there. Resolves to whether it is what is seen now. */
  async show(frame) {
    this.wanted = Math.min(Math.max(frame, 0), this.times.last);
    const [asked, turn] = [this.wanted, ++this.turn];
    this.root.setAttribute("aria-busy", "true");
    const image = await this.picture(asked);
    if (turn !== this.turn) return false;
    this.root.setAttribute("aria-busy", "false");
    if (!image) return false;
    if (image !== this.image) {
      this.image.replaceWith(image);
      this.image = image;
    }
    image.hidden = false;
    this.notify(asked, true);
    if (this.ready && !this.moving) this.video.currentTime = this.times.inside(asked);
    if (!this.moving) for (const near of [1, -1, 2, 3]) this.picture(asked + near, true);
    return true;
  }

  /* The decoded JPEG of a frame, fetched once; a dropped connection is reported, and tried again while it is wanted. */
  async picture(frame, ahead = false) {
    if (frame < 0 || frame > this.times.last) return null;
    const address = `${this.root.dataset.media}/frame/${this.times.pts(frame)}${this.asShown ? "?as_shown=true" : ""}`;
    if (!this.pictures.has(address)) {
      this.pictures.set(address, this.fetched(address, () => !ahead && this.wanted === frame));
      while (this.pictures.size > PREFETCHED) this.pictures.delete(this.pictures.keys().next().value);
    }
    const kept = this.pictures.get(address);
    const image = await kept;
    if (!image) {
      if (this.pictures.get(address) === kept) this.pictures.delete(address);
      if (!ahead && this.wanted === frame) return this.picture(frame);
    }
    return image;
  }

  async fetched(address, wanted) {
    for (;;) {
      const image = new Image();
      image.alt = "";
      image.src = address;
      try {
        await image.decode();
        if (this.root.dataset.lost) say(this.root, "");
        delete this.root.dataset.lost;
        return image;
      } catch {
        if (!wanted()) return null;
        this.root.dataset.lost = "true";
        say(this.root, this.asShown ? "unseen" : "lost");
        await pause(RETRY_MS);
      }
    }
  }

  /* The SHA-256 of a frame's JPEG as large as the file: what is stored with whatever was drawn on it. Null offline. */
  async sha256(frame) {
    try {
      const answer = await fetch(`${this.root.dataset.media}/frame/${this.times.pts(frame)}`);
      if (!answer.ok) return null;
      const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", await answer.arrayBuffer()));
      return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    } catch (error) {
      if (error instanceof TypeError) return null;
      throw error;
    }
  }

  step(by) { this.halt(); return this.show(this.wanted + by); }

  seek(time) { this.halt(); return this.show(this.times.at(time)); }

  showPts(pts) {
    const frame = this.times.frameOf(pts);
    this.halt();
    return frame < 0 ? Promise.resolve(false) : this.show(frame);
  }

  /* -- motion */

  async play(rate = this.rate) {
    this.halt();
    this.rate = rate;
    this.notify(this.frame, this.moving === 0);
    if (this.frame < this.loop[0] || this.frame >= this.loop[1]) this.frame = this.loop[rate < 0 ? 1 : 0];
    const turn = ++this.turn;
    if (rate < 0 || !this.ready) {
      this.moving = 2;
      this.shuttle(turn);
    } else {
      this.moving = 1;
      await this.start(turn);
    }
    this.root.dataset.moving = String(this.moving === 0 ? "" : rate);
  }

  async start(turn) {
    const video = this.video;
    video.playbackRate = this.rate;
    video.currentTime = this.times.inside(this.frame);
    this.watch(turn);
    try {
      await video.play();
    } catch (error) {
      if (error.name !== "AbortError") this.halt();
    }
  }

  /* Follows the video: each picture that it presents says by its media time which one it is. */
  watch(turn) {
    const video = this.video;
    const presented = (frame) => {
      if (turn !== this.turn) return;
      this.image.hidden = true;
      this.notify(frame, false);
      if (this.frame < this.loop[1]) next(); else over();
    };
    const over = () => {
      if (turn !== this.turn) return;
      if (!this.looping) return void this.stop(this.loop[1]);
      video.currentTime = this.times.inside(this.loop[0]);
      if (video.ended) video.play();
      next();
    };
    let asked = 0;
    const next = () => {
      if (video.requestVideoFrameCallback) {
        video.cancelVideoFrameCallback(asked);
        asked = video.requestVideoFrameCallback((_, facts) => presented(this.times.presented(facts.mediaTime)));
      } else {
        cancelAnimationFrame(asked);
        asked = requestAnimationFrame(() => presented(this.times.under(video.currentTime - this.times.lead)));
      }
    };
    video.onended = over;
    next();
  }

  /* Motion by single pictures: backwards, and where there is no video to play. */
  async shuttle(turn) {
    const [began, from] = [performance.now(), this.times.played[this.frame]];
    while (turn === this.turn) {
      const passed = (performance.now() - began) / 1000 * this.rate;
      const frame = this.times.under(from + passed);
      const over = this.rate < 0 ? frame <= this.loop[0] : frame >= this.loop[1];
      const due = over ? this.loop[this.rate < 0 ? 0 : 1] : frame;
      this.wanted = due;
      const image = await this.picture(due);
      if (turn !== this.turn) return;
      if (image) {
        this.image.replaceWith(image);
        this.image = image;
        image.hidden = false;
        this.notify(due, true);
      }
      if (over && !this.looping) return void this.halt();
      if (over) {
        this.frame = this.loop[this.rate < 0 ? 1 : 0];
        return void this.shuttle(turn);
      }
      await new Promise(requestAnimationFrame);
    }
  }

  /* Ends motion, and leaves what is seen as it is. */
  halt() {
    if (!this.moving) return;
    this.moving = 0;
    this.turn += 1;
    this.wanted = this.frame;
    this.video.pause();
    delete this.root.dataset.moving;
  }

  /* Ends motion on the exact picture of where it is. */
  stop(frame = this.frame) { this.halt(); return this.show(frame); }

  toggle() { return this.moving ? this.stop() : this.play(Math.abs(this.rate)); }

  faster(by) {
    const distances = RATES.map((rate) => Math.abs(rate - Math.abs(this.rate)));
    const next = distances.indexOf(Math.min(...distances)) + by;
    this.rate = RATES[Math.min(Math.max(next, 0), RATES.length - 1)];
    if (this.moving === 1) this.video.playbackRate = this.rate;
    else if (this.moving) this.play(this.rate);
    this.notify(this.frame, this.moving === 0);
  }

  /* -- the window that is played */

  begin(frame = this.frame) { this.window(frame, Math.max(frame, this.loop[1])); }

  end(frame = this.frame) { this.window(Math.min(frame, this.loop[0]), frame); }

  window(first, last) {
    this.loop = [first, last];
    this.looping = first !== this.clip[0] || last !== this.clip[1];
    this.notify(this.frame, this.moving !== 1);
    this.root.dispatchEvent(new CustomEvent("window", { detail: { loop: this.loop, looping: this.looping } }));
  }

  /* The next of the item's events (seconds in data-events), from the first again after the last. */
  event() {
    const times = (this.root.dataset.events ?? "").split(" ").filter(Boolean).map(Number);
    if (!times.length) return null;
    const here = this.times.time(this.frame);
    const next = times.find((time) => this.times.at(time) > this.frame && time > here) ?? times[0];
    return this.seek(next);
  }

  /* Between the picture as large as the file and the one that systems were shown. */
  swap() {
    if (this.root.hasAttribute("data-only-whole")) return Promise.resolve(false);
    this.asShown = !this.asShown;
    this.root.toggleAttribute("data-as-shown", this.asShown);
    return this.stop();
  }

  /* -- what is reported, and what is typed */

  notify(frame, exact) {
    this.frame = frame;
    if (!this.moving || exact) this.wanted = frame;
    const [root, time] = [this.root, this.times.time(frame)];
    Object.assign(root.dataset, { pts: this.times.pts(frame), exact: String(exact), rate: String(this.rate) });
    const [clock, position] = [this.part("clock"), this.part("position")];
    if (clock) {
      clock.textContent = clockText(time);
      clock.dataset.pts = root.dataset.pts;
    }
    if (position) {
      position.value = String(frame);
      position.setAttribute("aria-valuetext", clockText(time));
    }
    const speed = this.part("speed");
    if (speed) speed.textContent = `${this.rate}×`;
    const detail = { frame, pts: root.dataset.pts, time, exact };
    root.dispatchEvent(new CustomEvent("frame", { detail }));
  }

  listen() {
    this.root.addEventListener("click", (event) => {
      const name = event.target.closest("[data-do]")?.dataset.do;
      if (name && COMMANDS[name]) COMMANDS[name](this);
    });
    this.part("position")?.addEventListener("input", (event) => {
      this.halt();
      this.show(Number(event.target.value));
    });
    this.root.addEventListener("pointerdown", () => { active = this; }, true);
    this.root.addEventListener("focusin", () => { active = this; });
    if (!active?.root.isConnected) active = this;
  }
}

const COMMANDS = {
  toggle: (one) => one.toggle(),
  forward: (one) => one.play(one.moving && one.rate > 0 ? Math.min(one.rate * 2, 8) : 1),
  reverse: (one) => one.play(one.moving && one.rate < 0 ? Math.max(one.rate * 2, -8) : -1),
  next: (one) => one.step(1),
  back: (one) => one.step(-1),
  later: (one) => one.seek(one.times.time(one.wanted) + 1),
  earlier: (one) => one.seek(one.times.time(one.wanted) - 1),
  first: (one) => one.stop(one.loop[0]),
  last: (one) => one.stop(one.loop[1]),
  slower: (one) => one.faster(-1),
  faster: (one) => one.faster(1),
  in: (one) => one.begin(),
  out: (one) => one.end(),
  whole: (one) => one.window(...one.clip),
  event: (one) => one.event(),
  shown: (one) => one.swap(),
};

const KEYS = {
  " ": "toggle", k: "toggle", l: "forward", j: "reverse", ".": "next", ",": "back", ArrowRight: "next",
  ArrowLeft: "back", "shift ArrowRight": "later", "shift ArrowLeft": "earlier", ":": "later", ";": "earlier",
  Home: "first", End: "last", "-": "slower", "+": "faster", "=": "faster", i: "in", o: "out", u: "whole",
  e: "event", m: "shown",
};

let active = null;

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || !active?.root.isConnected) return;
  if (event.target.closest?.(TYPED)) return;
  if (event.key === " " && event.target.closest?.("button, a, summary")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const name = KEYS[`${event.shiftKey && event.key.length > 1 ? "shift " : ""}${key}`];
  if (!name) return;
  event.preventDefault();
  COMMANDS[name](active);
});

/* A message of the page's own, in its language: data-words holds them by name. */
function say(root, name) {
  const status = root.querySelector('[data-part="status"]');
  if (status) status.textContent = name ? JSON.parse(root.dataset.words ?? "{}")[name] ?? name : "";
}

function pause(ms) { return new Promise((done) => { setTimeout(done, ms); }); }

function begin(within) {
  for (const root of within.querySelectorAll("[data-player]")) playerOf(root).catch(() => say(root, "missing"));
}

begin(document);
document.addEventListener("htmx:load", (event) => begin(event.target));
