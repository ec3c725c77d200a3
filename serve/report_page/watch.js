// Plays the evidence of the open question in the served report, and takes ticks on it. One video plays
// at a time, and it is loaded only when it is played.

import { clock, playing } from "/page/video.js";

const { video_names, rows } = await unpack("index"); // `unpack` is in browse.js.
const videoOf = new Map(rows.map(([id, , , , video]) => [id, video]));
const wordsOf = new Map(rows.map(([id, question, options]) => [id, [question, options]]));

function button(text, label, act) {
  const element = document.createElement("button");
  element.type = "button";
  element.textContent = text;
  element.setAttribute("aria-label", label);
  element.addEventListener("click", act);
  return element;
}

let ending = () => {}; // Removes the video that plays now.

// Puts the player of video `name` into `bar`; returns null if it cannot be played, and `state` shows why.
async function start(name, bar, state) {
  ending();
  state.textContent = "";
  let facts = null;
  try {
    const reply = await fetch(`/videos?video=${encodeURIComponent(name)}`);
    if (reply.ok) facts = await reply.json();
    else state.textContent = await reply.text();
  } catch {
    state.textContent = "the page is no longer served";
  }
  if (facts === null || facts.problem) {
    state.textContent ||= facts.problem;
    return null;
  }
  const video = document.createElement("video");
  video.controls = video.playsInline = true;
  video.setAttribute("aria-label", "Video");
  bar.prepend(video);
  video.addEventListener("error", () => { state.textContent = "this part of the video cannot be played"; });
  const time = bar.querySelector("output");
  video.addEventListener("timeupdate", () => { time.textContent = clock(player.now()); });
  const player = playing(video, facts);
  ending = () => {
    video.pause();
    video.removeAttribute("src");
    video.load();
    video.remove();
    time.textContent = "";
    ending = () => {};
  };
  return player;
}

function add(body) { // Adds the player to an opened question or video.
  if (body.querySelector(".watch") || !body.hasChildNodes()) return;
  const question = body.closest("[data-id]");
  const video = question ? videoOf.get(question.dataset.id) : body.querySelector("img[data-video]")?.dataset.video;
  if (video === undefined) return;
  const bar = document.createElement("div");
  bar.className = "watch";
  const state = document.createElement("span");
  state.className = "soft small";
  state.setAttribute("role", "status");
  let player = null, coming = null, circling = null;

  async function ready() {
    if (!bar.querySelector("video")) coming = start(video_names[video][0], bar, state);
    player = await coming;
    return player;
  }
  const spans = [...body.querySelectorAll(".where i")].map((i) => [Number(i.dataset.start), Number(i.dataset.end)]);
  for (const span of spans) {
    const [from, until] = span.map(clock);
    bar.append(button(`▶ ${from} – ${until}`, `Play the evidence from ${from} to ${until}`, async () => {
      circling = span;
      if (!await ready()) return;
      player.loop(loop.getAttribute("aria-pressed") === "true" ? span : null);
      player.play(...span);
    }));
  }
  if (!spans.length) bar.append(button("▶ Play", "Play the video", async () => (await ready())?.play(0)));
  const loop = button("Loop", "Loop the evidence", () => {
    const on = loop.getAttribute("aria-pressed") !== "true";
    loop.setAttribute("aria-pressed", String(on));
    player?.loop(on ? circling : null);
  });
  loop.setAttribute("aria-pressed", "false");
  if (spans.length) bar.append(loop);
  bar.append(document.createElement("output"), state);
  (body.querySelector(".strip") ?? body.firstChild).after(bar);

  for (const frame of body.querySelectorAll(".strip img[data-time]")) { // A click on a frame plays from its time.
    const from = Number(frame.dataset.time);
    const go = async () => (await ready())?.play(from, null);
    frame.classList.add("play");
    frame.tabIndex = 0;
    frame.setAttribute("role", "button");
    frame.alt = `Play from ${clock(from)}`;
    frame.addEventListener("click", go);
    frame.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      go();
    });
  }
}

const asked = await fetch("/ticks");
const ticks = asked.ok ? await asked.json() : null; // question id -> [verdict, reason, words, options]

function field(label, value) {
  const input = document.createElement("textarea");
  input.value = value;
  input.rows = 1 + Math.floor(value.length / 60);
  input.setAttribute("aria-label", label);
  return input;
}

// The form that edits a question; `save` is called with its words.
function editor([question, options], save, takeBack, close) {
  const form = document.createElement("form");
  form.className = "edit";
  const words = field("Question", question);
  const fields = options.map((option, n) => field(`Option ${String.fromCharCode(65 + n)}`, option));
  const submit = document.createElement("button");
  submit.textContent = "Save";
  form.append(words, ...fields, submit, button("Cancel", "Close without saving", close));
  if (takeBack) form.append(button("Take back", "Take back the edited words", takeBack));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    save({ words: words.value, options: fields.map((each) => each.value) });
  });
  return form;
}

function addTicks(body) { // Adds the buttons that keep, drop or edit a question.
  const name = body.closest("[data-id]")?.dataset.id;
  if (ticks === null || name === undefined || body.querySelector(".tick") || !body.hasChildNodes()) return;
  const bar = document.createElement("div");
  bar.className = "watch tick";
  const reason = document.createElement("input");
  reason.maxLength = 500;
  reason.placeholder = "reason, if you like";
  reason.setAttribute("aria-label", "Reason");
  const state = document.createElement("span");
  state.className = "soft small";
  state.setAttribute("role", "status");
  const buttons = {};
  const edited = document.createElement("div");
  edited.className = "edited";
  let form = null;
  function close() {
    form?.remove();
    form = null;
  }
  function show() {
    const [verdict, why, words, options] = ticks[name] ?? ["none", ""];
    for (const [each, element] of Object.entries(buttons)) element.setAttribute("aria-pressed", String(each === verdict));
    reason.value = why;
    state.textContent = { keep: "kept by hand", drop: "dropped by hand", edit: "edited by hand", none: "" }[verdict];
    edited.replaceChildren();
    if (verdict !== "edit") return;
    const list = document.createElement("ol");
    list.type = "A";
    list.append(...options.map((option) => Object.assign(document.createElement("li"), { textContent: option })));
    edited.append(Object.assign(document.createElement("strong"), { textContent: words }), list);
  }
  function edit() {
    if (form) { close(); return; }
    const [verdict, , words, options] = ticks[name] ?? [];
    const isEdited = verdict === "edit";
    form = editor(isEdited ? [words, options] : wordsOf.get(name), (given) => send("edit", given),
      isEdited ? () => send("none") : null, close);
    bar.after(form);
    form.querySelector("textarea").focus();
  }
  async function send(verdict, given = {}) {
    const pressed = verdict !== "edit" && ticks[name]?.[0] === verdict;
    const body = JSON.stringify({ question: name, verdict: pressed ? "none" : verdict, reason: reason.value, ...given });
    try {
      const reply = await fetch("/ticks", { method: "POST", body });
      if (!reply.ok) { state.textContent = await reply.text(); return; }
      ticks[name] = await reply.json();
      close();
      show();
    } catch {
      state.textContent = "the page is no longer served";
    }
  }
  buttons.keep = button("✓ Keep", "Keep this question", () => send("keep"));
  buttons.drop = button("✗ Drop", "Drop this question", () => send("drop"));
  buttons.edit = button("✎ Edit", "Edit this question", edit);
  bar.append(buttons.keep, buttons.drop, buttons.edit, reason, state);
  show();
  body.append(bar, edited);
}

document.addEventListener("toggle", (event) => { // Closing a question also stops its sound.
  if (!event.target.open && event.target.querySelector?.(".watch video")) ending();
}, true);
document.addEventListener("filled", (event) => { add(event.target); addTicks(event.target); });
document.querySelectorAll(".body").forEach((body) => { add(body); addTicks(body); });
