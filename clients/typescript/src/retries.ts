// Retries with backoff, below everything that sends requests.
//
// Only what cannot be done twice by it is sent again: reads, requests with an `Idempotency-Key`, and requests that never reached
// the server or that it turned away before it looked at them (429).

/** How often and how long a request is tried again. `tries: 1` sends everything once. */
export interface Retries {
  tries: number;
  firstMs: number;
  maximumMs: number;
  sleep: (ms: number) => Promise<void>;
}

export const DEFAULT_RETRIES: Retries = {
  tries: 5,
  firstMs: 250,
  maximumMs: 30_000,
  sleep: (ms) => new Promise((resume) => setTimeout(resume, ms)),
};

const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);
/** The server, or what stands before it, is busy or starts again. */
const RETRIED_STATUSES = new Set([429, 502, 503, 504]);

/** Time before the next try: twice as long each time, and never the same for two clients. */
export function pause(retries: Retries, tried: number): number {
  const longest = Math.min(retries.maximumMs, retries.firstMs * 2 ** Math.min(tried - 1, 30));
  return longest / 2 + (Math.random() * longest) / 2;
}

/** The time that the server asks to wait, from a number of seconds or a date. */
export function retryAfter(response: Response): number | undefined {
  const value = response.headers.get("retry-after")?.trim() ?? "";
  if (/^\d+$/.test(value)) return Number(value) * 1_000;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}

/** Whether no connection was made. Node says so; a browser does not. */
function wasNeverSent(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && "code" in cause && cause.code === "ECONNREFUSED";
}

/** Wraps `fetch`. */
export function retrying(send: typeof fetch, retries: Retries): (request: Request) => Promise<Response> {
  return async (request) => {
    const isSafe = SAFE_METHODS.has(request.method) || request.headers.has("idempotency-key");
    for (let tried = 1; ; tried++) {
      const isLast = tried >= retries.tries;
      let response: Response;
      try {
        // A request can be sent only once: the next try needs its body, too.
        response = await send(isLast ? request : request.clone());
      } catch (error) {
        if (isLast || !(isSafe || wasNeverSent(error)) || request.signal.aborted) throw error;
        await retries.sleep(pause(retries, tried));
        continue;
      }
      const isRetried = RETRIED_STATUSES.has(response.status) && (isSafe || response.status === 429);
      const wanted = retryAfter(response);
      if (isLast || !isRetried || (wanted !== undefined && wanted > retries.maximumMs)) return response;
      await response.body?.cancel();
      await retries.sleep(wanted ?? pause(retries, tried));
    }
  };
}
