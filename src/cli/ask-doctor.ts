import type { LiveDiagnoseOptions, LiveDiagnosis } from "../doctor/live/live-doctor.ts";
import { describeError, UsageError } from "../errors.ts";
import { isObject } from "../values/is-object.ts";

/** The longest wait for a service's answer, in milliseconds. */
const waitMs = 60_000;

/**
 * Asks a service for its live diagnosis.
 *
 * @param options - `token` is the service's token, if it needs one.
 * @throws UsageError if no service answers, or if the service refuses the call.
 */
export async function askService(
  url: string,
  { thresholds = {}, assumedLag, token }: LiveDiagnoseOptions & { readonly token?: string },
): Promise<LiveDiagnosis> {
  const place = placeOf(url);
  for (const [name, value] of Object.entries(thresholds)) {
    place.searchParams.set(name, String(value));
  }
  if (assumedLag !== undefined) place.searchParams.set("lag", String(assumedLag));
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  let answer: unknown;
  try {
    const signal = AbortSignal.timeout(waitMs);
    answer = await (await fetch(place, { headers, signal, redirect: "error" })).json();
  } catch (error) {
    throw new UsageError(
      `Cannot ask ${url}: ${describeError(error)}; expected the address of a running \`turnwright serve\``,
      { cause: error },
    );
  }
  const { verdict, error } = isObject(answer) ? answer : {};
  if (typeof verdict === "string") return answer as LiveDiagnosis;
  const { message } = isObject(error) ? error : {};
  const reason = typeof message === "string" ? message : "its answer is not a diagnosis";
  throw new UsageError(`Cannot diagnose at ${url}: ${reason}`);
}

function placeOf(url: string): URL {
  const wrong = new UsageError(`Cannot use --url ${url}: expected http://host:port`);
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) throw wrong;
  const base = new URL(url);
  return new URL(`${base.pathname.replace(/\/+$/, "")}/v1/doctor`, base);
}
