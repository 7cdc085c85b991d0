import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";

/** One exchange with a real server. */
export interface Recording {
  readonly name: string;
  readonly request: {
    readonly method: string;
    readonly path: string;
    /** JSON, or invalid text. */
    readonly body: unknown;
  };
  /** Absent if the client or the server closed the connection. */
  readonly response?: {
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly text: string;
  };
}

/** The answer of a server. */
export interface Answer {
  readonly status: number;
  readonly contentType: string | undefined;
  readonly text: string;
}

/**
 * Returns the exchanges with a real server, from a file of `recorded/`. They prove that our test servers
 * reply, and our engines read, as the real servers do.
 */
export function readRecordings(server: string): readonly Recording[] {
  const file = new URL(`recorded/${server}.jsonl.gz`, import.meta.url);
  const lines = gunzipSync(readFileSync(file)).toString("utf8").trim().split("\n");
  return lines.map((line) => JSON.parse(line) as Recording);
}

/** Sends a recording's request to a server. */
export async function replay(url: string, { request }: Recording): Promise<Answer> {
  const { method, path: target, body } = request;
  const reply = await fetch(url + target, {
    method,
    headers: { "content-type": "application/json" },
    ...(body !== null &&
      body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const contentType = reply.headers.get("content-type") ?? undefined;
  return { status: reply.status, contentType, text: await reply.text() };
}

/** The JSON of a text, or the text. */
export function toValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return text;
  }
}

/** The values of server-sent events. */
export function toEvents(text: string): readonly unknown[] {
  return text
    .split("\n\n")
    .filter((event) => event.startsWith("data: "))
    .map((event) => toValue(event.slice("data: ".length)));
}

/**
 * Replaces values that differ between servers by their type: members of these names, at any depth.
 * All other members must be equal.
 */
export function normalise(value: unknown, volatileNames: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) return value.map((item) => normalise(item, volatileNames));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, member]) => [
        name,
        volatileNames.has(name) ? `any ${typeof member}` : normalise(member, volatileNames),
      ]),
  );
}

/** Returns the recordings with their names, as `test.each()` takes them. */
export function toCases(
  recordings: readonly Recording[],
): readonly (readonly [name: string, recording: Recording])[] {
  return recordings.map((recording) => [recording.name, recording] as const);
}
