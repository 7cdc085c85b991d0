import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { sharedData } from "../../../src/testing/shared-data.fixture.ts";

/** One exchange with a real server. */
export interface Recording {
  readonly name: string;
  readonly request: {
    readonly method: string;
    readonly path: string;
    /** JSON, or text that is none. */
    readonly body: unknown;
  };
  /** Absent where the client closed the connection, and where the server did. */
  readonly response?: {
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly text: string;
  };
}

/** What a server answered. */
export interface Answer {
  readonly status: number;
  readonly contentType: string | undefined;
  readonly text: string;
}

/**
 * The exchanges of a folder of `data/real-engines` in shared data, without those whose connection was
 * closed; `null` where this machine has no shared data. A test of recordings that were made
 * elsewhere, so that what our test servers say and what our engines read is what real servers say.
 */
export function readRecordings(folder: string): readonly Recording[] | null {
  const shared = sharedData();
  if (shared === null) return null;
  const directory = path.join(shared, "data/real-engines", folder);
  return readdirSync(directory)
    .filter((file) => file.endsWith(".json"))
    .map((file) => {
      const text = readFileSync(path.join(directory, file), "utf8");
      const { request, response } = JSON.parse(text) as Omit<Recording, "name">;
      const isWhole = typeof response === "object" && typeof response.status === "number";
      return { name: file.slice(0, -5), request, ...(isWhole && { response }) };
    });
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
 * Replaces what no two servers say alike by its type: members of these names, wherever they are. The
 * rest must be equal, and so must which members there are.
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

const NONE: Recording = { name: "none", request: { method: "GET", path: "/", body: null } };

/** Cases of a test by name: one where there are no recordings, for it to be skipped and not missing. */
export function toCases(
  recordings: readonly Recording[],
): readonly (readonly [name: string, recording: Recording])[] {
  const cases = recordings.map((recording) => [recording.name, recording] as const);
  return cases.length === 0 ? [["no recordings", NONE]] : cases;
}
