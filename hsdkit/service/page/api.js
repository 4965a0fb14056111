// Talking to the service: requests with the token, uploads with progress, a job's events line by line.

const KEY = "hsdkit-token";

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function setToken(token) {
  sessionStorage.setItem(KEY, token);
}

function headers() {
  const token = sessionStorage.getItem(KEY);
  return token ? { Authorization: `Bearer ${token}` } : {};
}

export async function ask(path, method = "GET") {
  const answer = await fetch(path, { method, headers: headers() });
  if (!answer.ok) throw new Refused(answer.status, await reason(answer));
  return answer;
}

async function reason(answer) {
  try {
    return (await answer.json()).error || answer.statusText;
  } catch {
    return answer.statusText || `status ${answer.status}`;
  }
}

// XMLHttpRequest, because fetch does not tell how far an upload is.
export function send(file, pages, onProgress) {
  return new Promise((resolve, reject) => {
    const form = new FormData();
    if (pages) form.append("pages", pages);
    form.append("file", file);
    const request = new XMLHttpRequest();
    request.open("POST", "/v1/jobs");
    for (const [name, value] of Object.entries(headers())) request.setRequestHeader(name, value);
    request.upload.onprogress = (e) => onProgress(e.loaded / e.total);
    request.onerror = () => reject(new Refused(0, "the service cannot be reached"));
    request.onload = () => {
      let body = {};
      try {
        body = JSON.parse(request.responseText);
      } catch {
        // told by the status
      }
      if (request.status === 202) resolve(body);
      else reject(new Refused(request.status, body.error || `status ${request.status}`));
    };
    request.send(form);
  });
}

export async function* events(job, signal) {
  const answer = await fetch(`/v1/jobs/${encodeURIComponent(job)}/events`, { headers: headers(), signal });
  if (!answer.ok) throw new Refused(answer.status, await reason(answer));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) yield JSON.parse(line);
  }
}

export async function save(path, name) {
  const blob = await (await ask(path)).blob();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

export async function picture(path) {
  return URL.createObjectURL(await (await ask(path)).blob());
}
