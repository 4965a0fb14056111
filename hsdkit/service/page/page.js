// The flow: a file is dropped, its job is watched, pages appear as they are finished. The address keeps the job (#ID).

import * as api from "./api.js";
import * as draw from "./draw.js";

const $ = (id) => document.getElementById(id);
const OVER = ["done", "failed", "cancelled", "stopped"];

let watching = null; // of the job on the screen
let clock = null;

function problem(message) {
  $("problem").textContent = message || "";
  $("problem").hidden = !message;
}

function explain(error) {
  if (error.status === 401) {
    askForToken();
    problem("This service asks for a token.");
  } else problem(error.message);
}

function askForToken() {
  $("token-field").hidden = $("token-go").hidden = false;
  $("token").focus();
}

async function health() {
  try {
    const state = await (await fetch("/v1/health")).json();
    $("health").className = `health ${state.status}`;
    $("health").textContent = state.error || `${state.status} · ${state.target}, ${state.verifier}`;
    if (state.status === "loading") setTimeout(health, 1500);
  } catch {
    $("health").className = "health failed";
    $("health").textContent = "cannot be reached";
  }
}

async function limits() {
  const { body_bytes: bytes, pages } = await (await api.ask("/v1/limits")).json();
  $("limits").textContent = ` · up to ${Math.round(bytes / 2 ** 20)} MB, ${pages} pages`;
}

async function list() {
  const jobs = await (await api.ask("/v1/jobs")).json();
  $("earlier").hidden = !jobs.length || Boolean(location.hash);
  $("list").replaceChildren(
    ...jobs.slice(0, 30).map((job) => {
      const link = draw.el("a", { href: `#${job.id}` }, job.source);
      const when = new Date(job.created * 1000).toLocaleTimeString();
      return draw.el("li", {}, link, draw.el("span", {}, `${job.status} · ${job.pages_finished} of ${job.pages} pages · ${when}`));
    }),
  );
}

async function upload(file) {
  if (!file) return;
  problem("");
  stop();
  history.replaceState(null, "", "/");
  show({ source: file.name, status: "uploading", pages: 0, pages_finished: 0, pages_failed: 0, tokens: 0, steps: 0, tokens_per_step: 0 });
  try {
    const job = await api.send(file, $("pages").value.trim(), (part) => ($("progress").value = part));
    location.hash = job.id;
  } catch (error) {
    route();
    explain(error);
  }
}

function show(job) {
  $("start").classList.add("small");
  $("earlier").hidden = true;
  $("job").hidden = false;
  $("source").textContent = job.source;
  $("state").textContent = job.pages_failed ? `${job.status}, ${job.pages_failed} failed` : job.status;
  $("state").className = `state ${job.status}`;
  $("error").textContent = job.error || "";
  $("error").hidden = !job.error;
  $("progress").value = job.pages ? job.pages_finished / job.pages : 0;
  $("t-pages").textContent = job.pages ? `${job.pages_finished} of ${job.pages}` : "–";
  $("t-tokens").textContent = job.tokens ? job.tokens.toLocaleString("en") : "–";
  $("t-steps").textContent = job.steps ? job.steps.toLocaleString("en") : "–";
  $("t-ratio").textContent = job.steps ? job.tokens_per_step.toFixed(2) : "–";
  const over = OVER.includes(job.status);
  for (const id of ["markdown", "json", "report"]) $(id).disabled = !over || job.status === "cancelled";
  $("delete").textContent = over ? "Delete" : "Cancel";
  $("delete").disabled = !job.id;
  clearInterval(clock);
  const tick = () => {
    const until = job.ended || Date.now() / 1000;
    $("t-time").textContent = job.started ? draw.duration(Math.max(0, until - job.started)) : job.status === "queued" ? "waiting" : "–";
  };
  tick();
  if (!over && job.id) clock = setInterval(tick, 500);
}

function stop() {
  watching?.abort();
  watching = null;
  clearInterval(clock);
  $("sheets").replaceChildren();
  draw.setShares($("share"), {});
}

async function watch(id) {
  stop();
  const control = (watching = new AbortController());
  const sheets = new Map(); // page number -> its card, in order
  const shares = { accepted: 0, corrected: 0, model: 0 };
  const place = (number, card) => {
    const old = sheets.get(number);
    sheets.set(number, card);
    if (old) old.card.replaceWith(card.card);
    else {
      const next = [...sheets.keys()].filter((n) => n > number).sort((a, b) => a - b)[0];
      $("sheets").insertBefore(card.card, next === undefined ? null : sheets.get(next).card);
    }
  };
  try {
    for await (const event of api.events(id, control.signal)) {
      if (control.signal.aborted) return;
      if (event.event === "job" || event.event === "end") show(event);
      else if (event.event === "text") {
        if (!sheets.get(event.page)?.text) place(event.page, draw.growing(event.page));
        const { text } = sheets.get(event.page);
        text.textContent = text.textContent.slice(0, event.at) + event.text;
        text.scrollTop = text.scrollHeight;
      } else if (event.event === "page") {
        place(event.page.number, { card: draw.page(event.page, pictures(id)) });
        for (const origin of Object.keys(shares)) shares[origin] += event.page.shares?.[origin] || 0;
        draw.setShares($("share"), shares);
      }
      if (event.event === "end") return;
    }
    throw new Error("the connection has ended; reload the page to go on");
  } catch (error) {
    if (control.signal.aborted) return;
    if (error.status === 404) {
      $("job").hidden = true;
      history.replaceState(null, "", "/");
    }
    explain(error);
  }
}

// Images are fetched when they come into view: a long document has hundreds.
function pictures(id) {
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      api.picture(`/v1/jobs/${encodeURIComponent(id)}/pages/${target.dataset.number}/image`).then(
        (url) => {
          target.onload = () => URL.revokeObjectURL(url);
          target.src = url;
        },
        () => {},
      );
    }
  }, { rootMargin: "600px" });
  return (image, number) => {
    image.dataset.number = number;
    seen.observe(image);
  };
}

function route() {
  const id = location.hash.slice(1);
  if (id) watch(id);
  else {
    stop();
    $("job").hidden = true;
    $("start").classList.remove("small");
    list().catch(explain);
  }
}

function current() {
  return `/v1/jobs/${encodeURIComponent(location.hash.slice(1))}`;
}

function setUp() {
  $("file").onchange = (e) => {
    upload(e.target.files[0]);
    e.target.value = "";
  };
  $("form").onsubmit = (e) => e.preventDefault();
  let depth = 0; // dragenter and dragleave come for every element that is crossed
  const over = (change) => document.body.classList.toggle("over", (depth = Math.max(0, depth + change)) > 0);
  addEventListener("dragenter", (e) => (e.preventDefault(), over(1)));
  addEventListener("dragleave", () => over(-1));
  addEventListener("dragover", (e) => e.preventDefault());
  addEventListener("drop", (e) => {
    e.preventDefault();
    over(-depth);
    upload(e.dataTransfer.files[0]);
  });
  for (const [id, suffix] of Object.entries({ markdown: ".md", json: ".json", report: ".html" })) {
    $(id).onclick = () => api.save(`${current()}/${id}`, $("source").textContent + suffix).catch(explain);
  }
  $("delete").onclick = async () => {
    await api.ask(current(), "DELETE").catch(explain);
    location.hash = "";
  };
  $("token-go").onclick = () => {
    api.setToken($("token").value);
    $("token-field").hidden = $("token-go").hidden = true;
    problem("");
    limits().then(route, explain);
  };
  $("token").onkeydown = (e) => e.key === "Enter" && $("token-go").click();
  $("sheets").onmouseover = (e) => {
    const text = e.target.dataset?.caption;
    $("caption").hidden = !text;
    $("caption").textContent = text || "";
    $("caption").className = `caption ${text ? e.target.className : ""}`;
  };
  addEventListener("hashchange", route);
}

setUp();
health();
limits().then(route, explain);
