// A page as elements. Whatever comes from documents is put in as text, never as markup; the one piece of HTML (the
// rendered Markdown, made safe by the service) is rebuilt here from a list of harmless tags.

const SVG = "http://www.w3.org/2000/svg";
const TAGS = new Set(
  "H1 H2 H3 H4 H5 H6 P UL OL LI TABLE THEAD TBODY TR TD TH BR EM STRONG CODE PRE BLOCKQUOTE HR".split(" "),
);
const ENDS = {
  length: "The page is cut: the model reached the limit of new tokens.",
  loop: "The model began to repeat itself and was stopped; what came before is kept.",
  time: "The page is cut: its time was up.",
};

export function el(tag, props = {}, ...children) {
  const node = Object.assign(document.createElement(tag), props);
  node.append(...children);
  return node;
}

export function duration(seconds) {
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 99.95) return `${seconds.toPrecision(3)} s`;
  return `${Math.floor(Math.round(seconds) / 60)} min ${Math.round(seconds) % 60} s`;
}

export function setShares(bar, shares) {
  const all = Object.values(shares).reduce((a, b) => a + b, 0) || 1;
  for (const part of bar.children) part.style.width = `${(100 * (shares[part.className] || 0)) / all}%`;
}

export function growing(number) {
  const text = el("div", { className: "tokens" });
  const trio = el("div", { className: "trio growing" }, el("div", {}, el("h3", {}, "Being read"), text));
  const card = el("article", { className: "card sheet-card" }, head(number), trio);
  return { card, text };
}

function head(number, ...figures) {
  return el("header", {}, el("h2", {}, `Page ${number}`), el("div", { className: "figures" }, ...figures));
}

function figure(value, what) {
  return el("span", {}, el("b", {}, String(value)), ` ${what}`);
}

export function page(view, loadPicture) {
  const card = el("article", { className: "card sheet-card", id: `page-${view.number}` });
  const figures = [figure(duration(view.seconds), "")];
  if (view.tokens) {
    figures.push(figure(view.tokens, "tokens"), figure(view.steps, "steps"));
    figures.push(figure(view.tokens_per_step.toFixed(2), "tokens a step"));
    figures.push(el("span", {}, `${view.verifier}, tau ${view.tau}${view.exact ? " (exact)" : ""}`));
    figures.push(el("span", {}, `draft: ${view.drafter}`));
  }
  card.append(head(view.number, ...figures));
  if (view.tokens) {
    const bar = el("div", { className: "share thin" }, ...["accepted", "corrected", "model"].map((o) => el("i", { className: o })));
    setShares(bar, view.shares);
    card.append(bar);
  }
  if (view.error) card.append(el("p", { className: "notes bad" }, view.error));
  if (view.origin === "draft") card.append(el("p", { className: "notes bad" }, "The model did not read this page: below is the drafter's text."));
  if (view.saved_by) card.append(el("p", { className: "notes" }, `The first attempt failed; this is the one by ${view.saved_by}.`));
  if (ENDS[view.finish_reason]) card.append(el("p", { className: "notes bad" }, ENDS[view.finish_reason]));
  if (view.notes.length) card.append(el("p", { className: "notes" }, view.notes.join(" · ")));
  card.append(el("div", { className: "trio" }, where(view, loadPicture), who(view), out(view)));
  return card;
}

function where(view, loadPicture) {
  const title = el("h3", {}, "Page and regions");
  if (!view.width) return el("div", {}, title, el("p", { className: "soft" }, "no image of this page"));
  const image = el("img", { alt: `Page ${view.number}`, width: view.width, height: view.height });
  loadPicture(image, view.number);
  const sheet = el("div", { className: "sheet" }, image);
  const layer = (regions, kind, shown, words) => {
    if (!regions.length) return;
    const svg = boxes(view, regions, kind);
    const box = el("input", { type: "checkbox", checked: shown });
    const set = () => (svg.style.display = box.checked ? "" : "none");
    box.onchange = set;
    set();
    sheet.append(svg);
    title.append(el("label", {}, box, words));
  };
  layer(view.drafted, "", true, `${view.drafted.length} drafted`);
  layer(view.regions, "own", !view.drafted.length, `${view.regions.length} named by the model`);
  const labels = [...new Set([...view.drafted, ...view.regions].map((r) => r.label))];
  const key = labels.map((l) => el("span", { className: `label r-${slug(l)}` }, l.replaceAll("_", " ")));
  return el("div", {}, title, sheet, el("p", { className: "labels" }, ...key));
}

const slug = (label) => label.replace(/[^a-z_]/g, "");

function boxes(view, regions, kind) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${view.width} ${view.height}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", kind);
  for (const region of regions) {
    const [x0, y0, x1, y1] = region.box;
    const g = document.createElementNS(SVG, "g");
    g.setAttribute("class", `r-${slug(region.label)}${region.left_out ? " left-out" : ""}`);
    const rect = document.createElementNS(SVG, "rect");
    for (const [name, value] of Object.entries({ x: x0, y: y0, width: x1 - x0, height: y1 - y0 })) rect.setAttribute(name, Math.max(0, value));
    const title = document.createElementNS(SVG, "title");
    title.textContent = `${region.label}${region.left_out ? " (left out)" : ""}: ${region.text}`;
    g.append(rect, title);
    svg.append(g);
  }
  return svg;
}

function who(view) {
  const tokens = el("div", { className: "tokens", tabIndex: 0 });
  for (const run of view.runs) {
    const span = el("span", { className: run.origin }, run.text);
    span.dataset.caption = run.caption;
    tokens.append(span);
  }
  return el("div", {}, el("h3", {}, "Who wrote what"), tokens);
}

function out(view) {
  const rendered = el("div", { className: "rendered", tabIndex: 0 });
  rebuild(new DOMParser().parseFromString(view.html, "text/html").body, rendered);
  return el("div", { className: "out" }, el("h3", {}, "Markdown"), rendered);
}

function rebuild(from, to) {
  for (const node of from.childNodes) {
    if (node.nodeType === Node.TEXT_NODE) to.append(node.data);
    else if (node.nodeType === Node.ELEMENT_NODE) {
      if (!TAGS.has(node.tagName)) {
        to.append(node.textContent);
        continue;
      }
      const copy = document.createElement(node.tagName);
      for (const name of ["colspan", "rowspan", "start"]) {
        if (/^\d{1,6}$/.test(node.getAttribute(name) || "")) copy.setAttribute(name, node.getAttribute(name));
      }
      rebuild(node, copy);
      to.append(copy);
    }
  }
}
