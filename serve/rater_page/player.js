// The film: jumps, the loop, speed, the timeline, the transcript that follows. Times are the film's
// own, also where a stretch of it is played, and where the question is about a clip of it.

const SPEEDS = [0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3];

export const film = document.getElementById("film");
const spans = [...document.querySelectorAll(".span")];
const lines = [...document.querySelectorAll("#lines li")];
const whole = film !== null && film.dataset.whole === "1";
const begin = film === null ? 0 : Number(film.dataset.begin);
export const end = film === null ? 0 : Number(film.dataset.end);
const STEP = film === null ? 1 : Number(film.dataset.every); // seconds between the beginnings of stretches
export const picture = film === null ? 0 : 1 / Number(film.dataset.fps);

let offset = 0; // where the stretch that is loaded begins in the film
let current = -1; // the evidence that was jumped to last
let looped = null; // [start, end] that is played over and over
let looping = false;
let wanted = null; // where a stretch that is being loaded is to go on
let stop = null; // where to stop
let ahead = -1; // the stretch that the server was asked to make ready

export const now = () => wanted ?? offset + film.currentTime;

export function clock(seconds) {
  const tenths = Math.round(seconds * 10);
  const hours = Math.floor(tenths / 36000), minutes = Math.floor(tenths / 600) % 60;
  const rest = ((tenths % 600) / 10).toFixed(1).padStart(4, "0");
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}

export function seek(time, play = !film.paused) {
  if (film === null) return;
  stop = null;
  time = Math.max(begin, Math.min(time, Math.max(begin, end - 0.05)));
  const loaded = film.src && wanted === null && time >= offset && time < offset + (film.duration || 0);
  if (whole || loaded) {
    film.currentTime = time - offset;
    if (play) film.play().catch(() => {});
    return;
  }
  const number = Math.floor(time / STEP);
  const again = wanted !== null && offset === number * STEP;
  wanted = time;
  if (again) return; // it is on its way
  offset = number * STEP;
  film.src = `/film/${film.dataset.key}/${number}`;
  film.addEventListener("loadedmetadata", () => {
    film.currentTime = wanted - offset;
    wanted = null;
    if (play) film.play().catch(() => {});
  }, { once: true });
}

export function play(start, until) {
  seek(start, true);
  stop = until;
}

export function jump(index, playing = true) {
  if (film === null || !spans.length) return;
  current = (index + spans.length) % spans.length;
  spans.forEach((span, i) => span.classList.toggle("on", i === current));
  const { start, end: until } = spans[current].dataset;
  looped = [Number(start), Number(until)];
  seek(looped[0], playing);
}

export const next = (step) => jump(current + step);

export function loop(on = !looping) {
  looping = on;
  document.getElementById("loop").setAttribute("aria-pressed", String(on));
  if (on && looped === null) jump(0);
}

export function around(span) { // what the loop goes round, when a part is at hand
  looped = span;
}

export function speed(step) {
  const place = SPEEDS.indexOf(film.playbackRate) + step;
  film.playbackRate = film.defaultPlaybackRate = SPEEDS[Math.max(0, Math.min(place, SPEEDS.length - 1))];
  document.getElementById("speed").textContent = `${film.playbackRate}x`;
}

export const place = (time) => `${(100 * (time - begin)) / (end - begin)}%`;
export const width = (seconds) => `${(100 * seconds) / (end - begin)}%`;

function draw(canvas) { // shots as ticks, topics as longer ones, speech as a band
  const box = canvas.parentElement.getBoundingClientRect();
  canvas.width = box.width * devicePixelRatio;
  canvas.height = box.height * devicePixelRatio;
  const { shots = [], segments = [], speech = [] } = JSON.parse(document.getElementById("map-of").textContent);
  const pen = canvas.getContext("2d");
  const x = (time) => (canvas.width * (time - begin)) / (end - begin);
  pen.fillStyle = getComputedStyle(canvas).color;
  pen.globalAlpha = 0.35;
  for (const [start, until] of speech) pen.fillRect(x(start), canvas.height * 0.78, Math.max(1, x(until) - x(start)), canvas.height * 0.22);
  pen.globalAlpha = 0.6;
  for (const time of shots) pen.fillRect(x(time), 0, devicePixelRatio, canvas.height * 0.22);
  for (const time of segments) pen.fillRect(x(time), 0, 2 * devicePixelRatio, canvas.height * 0.45);
}

function prepare() { // the next stretch, while this one plays
  const following = Math.round((offset + film.duration) / STEP);
  if (whole || film.paused || following === ahead || film.currentTime < film.duration / 2) return;
  ahead = following;
  if (following * STEP < end) fetch(`/film/${film.dataset.key}/${following}`, { method: "HEAD" }).catch(() => {});
}

function follow(hand) {
  const time = now();
  prepare();
  if (looping && looped !== null && !film.paused) {
    if (time >= looped[1] || time < looped[0] - 0.5) seek(looped[0], true);
  } else if (stop !== null && time >= stop) {
    stop = null;
    film.pause();
  } else if (time >= end && !film.paused) film.pause();
  hand.style.left = place(time);
  document.getElementById("time").textContent = clock(time);
  for (const line of lines) {
    const on = time >= Number(line.dataset.start) && time < Number(line.dataset.end);
    if (on && !line.classList.contains("on")) {
      line.parentElement.scrollTop = line.offsetTop - line.parentElement.offsetTop - 40;
    }
    line.classList.toggle("on", on);
  }
}

if (film !== null) {
  const timeline = document.getElementById("timeline");
  for (const span of spans) {
    const bar = document.createElement("i");
    bar.style.left = place(Number(span.dataset.start));
    bar.style.width = width(span.dataset.end - span.dataset.start);
    timeline.append(bar);
  }
  const hand = document.createElement("b");
  timeline.append(hand);
  const canvas = document.getElementById("map");
  draw(canvas);
  addEventListener("resize", () => draw(canvas));
  timeline.addEventListener("click", (event) => {
    const box = timeline.getBoundingClientRect();
    seek(begin + ((end - begin) * (event.clientX - box.left)) / box.width);
  });
  for (const kind of ["timeupdate", "seeked"]) film.addEventListener(kind, () => follow(hand));
  film.addEventListener("ended", () => {
    if (looping && looped !== null && now() >= looped[1] - 0.2) seek(looped[0], true);
    else if (!whole && now() < end - 0.5) seek(now() + 0.01, true);
  });
  film.addEventListener("error", () => {
    document.getElementById("state").textContent = "This part of the film cannot be played.";
  });
  spans.forEach((span, i) => span.addEventListener("click", () => jump(i)));
  for (const line of lines) {
    line.querySelector("button").addEventListener("click", () => seek(Number(line.dataset.start), true));
  }
  document.getElementById("loop").addEventListener("click", () => loop());
  if (spans.length) jump(0, false);
  else seek(begin, false);
}
