// The rater's video: jumps, loop, speed, timeline, and the transcript that follows the video.

import { clock, playing } from "./video.js";

const SPEEDS = [0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3];

export const video = document.getElementById("video");
// Looked up once, because the video section is removed when the time of a timed round is over.
const [loopButton, rate, time] = ["loop", "speed", "time"].map((id) => document.getElementById(id));
const spans = [...document.querySelectorAll(".span")];
const lines = [...document.querySelectorAll("#lines li")];
const of = video === null ? {} : Object.fromEntries(
  ["begin", "end", "every", "fps"].map((name) => [name, Number(video.dataset[name])]),
);
const { begin = 0 } = of;
export const { end = 0 } = of;
export const frame = 1 / of.fps;
const player = video === null ? null : playing(video, { ...of, key: video.dataset.key, whole: video.dataset.whole === "1" });

let current = -1; // The index of the evidence span of the last jump.
let around = null; // The span of the loop: [start, end].
let looping = false;

export const now = () => player.now();
export const seek = (time, play) => player?.seek(time, play);
export const play = (start, until) => player.play(start, until);

export function jump(index, playing = true) {
  if (video === null || !spans.length) return;
  current = (index + spans.length) % spans.length;
  spans.forEach((span, i) => span.classList.toggle("on", i === current));
  const { start, end: until } = spans[current].dataset;
  circle([Number(start), Number(until)]);
  seek(around[0], playing);
}

export const next = (step) => jump(current + step);

export function loop(on = !looping) {
  if (on && around === null) jump(0);
  if (around === null) return; // There is no span to loop yet.
  looping = on;
  loopButton.setAttribute("aria-pressed", String(on));
  circle(around);
}

export function circle(span) { // Sets the span of the loop.
  around = span;
  player.loop(looping ? around : null);
}

export function speed(step) {
  const place = SPEEDS.indexOf(video.playbackRate) + step;
  video.playbackRate = video.defaultPlaybackRate = SPEEDS[Math.max(0, Math.min(place, SPEEDS.length - 1))];
  rate.textContent = `${video.playbackRate}x`;
}

export const place = (time) => `${(100 * (time - begin)) / (end - begin)}%`;
export const width = (seconds) => `${(100 * seconds) / (end - begin)}%`;

function draw(canvas) { // Draws shots as ticks, topics as longer ticks and speech as a band.
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

function follow(hand) {
  const at = now();
  hand.style.left = place(at);
  time.textContent = clock(at);
  for (const line of lines) {
    const on = at >= Number(line.dataset.start) && at < Number(line.dataset.end);
    if (on && !line.classList.contains("on")) {
      line.parentElement.scrollTop = line.offsetTop - line.parentElement.offsetTop - 40;
    }
    line.classList.toggle("on", on);
  }
}

if (video !== null) {
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
  for (const kind of ["timeupdate", "seeked"]) video.addEventListener(kind, () => follow(hand));
  video.addEventListener("error", () => {
    document.getElementById("state").textContent = "This part of the video cannot be played.";
  });
  spans.forEach((span, i) => span.addEventListener("click", () => jump(i)));
  for (const line of lines) {
    line.querySelector("button").addEventListener("click", () => seek(Number(line.dataset.start), true));
  }
  loopButton?.addEventListener("click", () => loop());
  if (spans.length) jump(0, false);
  else seek(begin, false);
}
