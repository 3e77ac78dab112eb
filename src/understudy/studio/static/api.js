// Talking to the server: JSON in, JSON out, and errors that are one sentence.

/** The server said no, or did not answer (status 0). `body` is what it said, if anything. */
export class Refused extends Error {
  constructor(status, sentence, body = {}, wait = null) {
    super(written(sentence));
    Object.assign(this, { status, body, wait });
  }

  /** Whether the same request may well succeed a little later. */
  get passing() {
    return [0, 429, 502, 503, 504].includes(this.status);
  }
}

/** A sentence as it stands on a page: with a capital and a full stop. */
const written = (sentence) => `${sentence[0].toUpperCase()}${sentence.slice(1)}${/[.!?]$/.test(sentence) ? "" : "."}`;

async function answered(method, path, { body, signal, token, timeout = 15000 } = {}) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (token) headers.Authorization = `Bearer ${token}`;
  const late = AbortSignal.timeout(timeout);
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, late]) : late,
      credentials: "omit",
      cache: "no-store",
    });
  } catch {
    throw new Refused(0, "The server does not answer.");
  }
  if (response.ok) return response;
  let said = {};
  try {
    said = await response.json();
  } catch {
    // not JSON: the status says enough
  }
  const wait = Number(response.headers.get("Retry-After")) || null;
  throw new Refused(response.status, said.error ?? `The server answered with status ${response.status}.`, said, wait);
}

export async function call(method, path, options) {
  const response = await answered(method, path, options);
  try {
    return await response.json();
  } catch {
    throw new Refused(0, "The answer of the server broke off.");
  }
}

/** Fetches a file that needs the token, and hands it to the browser as a download. */
export async function download(path, name, token) {
  const response = await answered("GET", path, { token, timeout: 120000 });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

/** Seconds to wait before a further attempt: half a second, doubling up to eight. */
export const backOff = (attempt, error) => Math.max(error?.wait ?? 0, Math.min(8, 0.5 * 2 ** attempt));

/** Waits, but no longer than until the network is back or the signal falls. */
export function patience(seconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(done, 1000 * seconds);
    function done() {
      clearTimeout(timer);
      removeEventListener("online", done);
      signal?.removeEventListener("abort", done);
      resolve();
    }
    addEventListener("online", done);
    signal?.addEventListener("abort", done);
  });
}
