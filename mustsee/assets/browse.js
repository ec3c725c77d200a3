// Finds, filters and opens the questions and videos of the report. Their HTML is compressed in the
// page, and is unpacked when one is opened.
"use strict";

const ROWS = 50;  // questions on a page of the list
const $ = (id) => document.getElementById(id);
const packs = new Map();

async function unpack(id) {
  if (!packs.has(id)) packs.set(id, inflate($(id).textContent));
  return packs.get(id);
}

async function inflate(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(plain).json();
}

const frames = new Map();
function frameUrl(video, time) {
  if (!frames.has(video)) {
    const element = $("frames-" + video);
    frames.set(video, element ? JSON.parse(element.textContent) : {});
  }
  const data = frames.get(video)[time];
  return data ? "data:image/jpeg;base64," + data : "";
}

// Puts item `number` of the packs called `kind` into `place`.
async function fill(place, kind, number) {
  const size = Number($("browse").dataset.pack);
  const pack = await unpack(kind + "-" + Math.floor(number / size));
  place.innerHTML = pack[number % size];  // already escaped in the page
  for (const image of place.querySelectorAll("img[data-video]")) {
    image.src = frameUrl(image.dataset.video, image.dataset.time);
    image.addEventListener("load", () => fade(image.closest(".strip")));
  }
  place.dispatchEvent(new Event("filled", { bubbles: true }));  // a server of the page adds players to it
}

// Fades the right edge of a strip that can be scrolled further.
function fade(strip) {
  const mark = () => strip.classList.toggle("cut", strip.scrollLeft + strip.clientWidth < strip.scrollWidth - 2);
  strip.onscroll = mark;
  mark();
}

function start(index) {
  const rows = index.rows.map(([id, question, options, type, video, subsets, fate, repaired, undecided, frame], number) =>
    ({number, id, question, options, type, video, subsets, fate, repaired, undecided, frame}));
  const fate = (row) => index.fates[row.fate];
  const passing = index.subsets.indexOf($("subset").dataset.passed);
  const passed = (row) => !fate(row) && (passing < 0 || row.subsets.includes(passing));
  const matchers = {
    fate: (row, value) => ({
      passed: passed(row), kept: !fate(row), dropped: fate(row), repaired: row.repaired, undecided: row.undecided,
    })[value] ?? fate(row) === value.slice(3),  // "by NAME"
    type: (row, value) => row.type === Number(value),
    subset: (row, value) => row.subsets.includes(Number(value)),
    video: (row, value) => row.video === Number(value),
  };
  let matches = rows;
  let page = 0;

  function searchText(row) {
    row.text ??= [row.id, row.question, ...row.options, ...index.video_names[row.video]].join("\n").toLowerCase();
    return row.text;
  }

  function search() {
    const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const filters = Object.keys(matchers).filter((name) => $(name).value !== "");
    matches = rows.filter((row) =>
      filters.every((name) => matchers[name](row, $(name).value)) && words.every((word) => searchText(row).includes(word)));
    page = 0;
    show();
  }

  function show() {
    const from = page * ROWS;
    const shown = matches.slice(from, from + ROWS);
    $("rows").replaceChildren(...shown.map(draw));
    const last = from + shown.length;
    $("count").textContent = matches.length === rows.length && last === rows.length
      ? `${rows.length} questions` : `${matches.length ? from + 1 : 0}–${last} of ${matches.length} questions`
        + (matches.length < rows.length ? `, ${rows.length} in all` : "");
    $("earlier").disabled = page === 0;
    $("later").disabled = last >= matches.length;
    $("pages").hidden = matches.length <= ROWS;
    openAll(false);
  }

  // Opens or closes all questions on this page of the list.
  function openAll(open) {
    for (const item of $("rows").children) item.open = open;
    $("open").textContent = open ? "close all" : "open all";
  }

  function draw(row) {
    const item = $("row").content.firstElementChild.cloneNode(true);
    const image = item.querySelector("img");
    const src = row.frame === null ? "" : frameUrl(row.video, row.frame);
    if (src) image.src = src; else image.remove();
    item.dataset.id = row.id;
    item.querySelector(".asked").textContent = row.question;
    item.querySelector(".about").textContent = `${index.video_names[row.video][1]} · ${index.types[row.type]}`;
    const tag = item.querySelector(".tag");
    const verdict = passed(row) ? "passed" : "left out by a filter";
    tag.textContent = fate(row) ? "dropped by " + fate(row) : row.repaired ? verdict + ", repaired" : verdict;
    tag.classList.add(fate(row) ? "no" : row.undecided || !passed(row) ? "maybe" : "ok");
    item.addEventListener("toggle", () => {
      const body = item.querySelector(".body");
      if (item.open && !body.hasChildNodes()) fill(body, "questions", row.number);
    });
    return item;
  }

  // Opens the question in the address, on its page of the list; false if there is none.
  function go() {
    const id = decodeURIComponent(location.hash.slice(1));
    const row = rows.find((one) => one.id === id);
    if (!row) return false;
    if (!matches.includes(row)) {
      $("controls").reset();
      matches = rows;
    }
    page = Math.floor(matches.indexOf(row) / ROWS);
    show();
    const item = $("rows").children[matches.indexOf(row) % ROWS];
    item.open = true;
    item.scrollIntoView();
    return true;
  }

  function choices(id, names, values) {
    $(id).append(...names.map((name, number) => new Option(name, values ? values[number] : number)));
    $(id).parentElement.hidden = names.length < 2 && id !== "fate";
  }

  choices("type", index.types);
  choices("subset", index.subsets);
  choices("video", index.video_names.map(([, title]) => title));
  const by = index.fates.filter(Boolean);
  choices("fate", by.map((name) => "dropped by " + name), by.map((name) => "by " + name));
  for (const name of ["search", ...Object.keys(matchers)]) $(name).addEventListener("input", search);
  $("controls").addEventListener("submit", (event) => event.preventDefault());
  $("open").addEventListener("click", () => openAll($("open").textContent === "open all"));
  for (const [id, step] of [["earlier", -1], ["later", 1]]) {
    $(id).addEventListener("click", () => { page += step; show(); $("browse").scrollIntoView(); });
  }
  window.addEventListener("hashchange", go);
  document.addEventListener("click", (event) => {
    const video = event.target.dataset?.show;
    if (video === undefined) return;
    $("controls").reset();
    $("video").value = video;
    search();
    $("browse").scrollIntoView();
  });
  $("browse").hidden = false;
  show();
  if (!go() && $("rows").firstElementChild) $("rows").firstElementChild.open = true;
  performance.mark("ready");
}

for (const panel of document.querySelectorAll("details[data-panel]")) {
  panel.addEventListener("toggle", () => {
    const body = panel.querySelector(".body");
    if (panel.open && !body.hasChildNodes()) fill(body, "videos", Number(panel.dataset.panel));
  });
}
unpack("index").then(start);
