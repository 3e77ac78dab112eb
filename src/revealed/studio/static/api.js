// Talking to the server: JSON in, JSON out, and errors that are one sentence.

/** The server refused, or did not answer (status 0). `body` is the JSON it sent, if any. */
export class RequestError extends Error {
  constructor(status, sentence, body = {}, retryAfter = null) {
    super(asSentence(sentence));
    Object.assign(this, { status, body, retryAfter });
  }

  /** Whether the same request may well succeed a little later. */
  get isTemporary() {
    return [0, 429, 502, 503, 504].includes(this.status);
  }
}

/** A sentence as it stands on a page: with a capital and a full stop. */
const asSentence = (sentence) =>
  `${sentence[0].toUpperCase()}${sentence.slice(1)}${/[.!?]$/.test(sentence) ? "" : "."}`;

/**
 * The response to a request, given up after `timeout` milliseconds; RequestError unless it is a
 * success.
 */
async function fetchAnswer(method, path, { body, signal, token, timeout = 15000 } = {}) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (token) headers.Authorization = `Bearer ${token}`;
  const timeLimit = AbortSignal.timeout(timeout);
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, timeLimit]) : timeLimit,
      credentials: "omit",
      cache: "no-store",
    });
  } catch {
    throw new RequestError(0, "The server does not answer.");
  }
  if (response.ok) return response;
  let payload = {};
  try {
    payload = await response.json();
  } catch {
    // not JSON: the status says enough
  }
  const retryAfter = Number(response.headers.get("Retry-After")) || null;
  throw new RequestError(
    response.status,
    payload.error ?? `The server answered with status ${response.status}.`,
    payload,
    retryAfter,
  );
}

/** The JSON that the server answers to a request; RequestError where it refuses or is away. */
export async function call(method, path, options) {
  const response = await fetchAnswer(method, path, options);
  try {
    return await response.json();
  } catch {
    throw new RequestError(0, "The answer of the server broke off.");
  }
}

/** Fetches a file that needs the token, and hands it to the browser as a download. */
export async function download(path, name, token) {
  const response = await fetchAnswer("GET", path, { token, timeout: 120000 });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  // The browser reads the object while it saves it; a minute is enough for the largest study.
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

/** Seconds to wait before a further attempt: half a second, doubling up to eight. */
export const retryDelay = (attempt, error) =>
  Math.max(error?.retryAfter ?? 0, Math.min(8, 0.5 * 2 ** attempt));

/** Waits some seconds, but not longer than until the network is back or the signal aborts. */
export function waitOrReconnect(seconds, signal) {
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
