import { decodeOrKeep } from "../../packages/python-values/src/support/decode-or-keep.ts";
import { jsonPieces } from "../json/json-pieces.ts";
import { isSecretParameter } from "./secret-name.ts";
import { formsOf } from "./secret-forms.ts";
import { takeTurn } from "../async/take-turn.ts";

/** Replaces a secret. */
export const redactionMark = "[redacted]";

/** The number of characters that are searched at once. */
const stretchLength = 64 * 1024;

type Form = readonly [form: string, replacement: string];

/**
 * Removes secrets from output: texts, JSON lines, errors. Also removes the secrets of `hideEverywhere()`. Finds a
 * secret itself and its encodings in JSON strings (also nested JSON), URLs and base64, the latter also within a
 * longer text.
 */
export class Redactor {
  /** Own secrets with their replacements, beside those of the process. It only grows. */
  readonly #own = new Map<string, string>();
  /** Own and process secrets together, cached until one of them changes. */
  #merged = { ownCount: 0, shared: [] as readonly Form[], forms: [] as readonly Form[] };

  /** Adds secrets such as API keys. */
  constructor(secrets: Iterable<string> = []) {
    for (const secret of secrets) this.learn(secret);
  }

  /** Adds a secret; an empty text is ignored. */
  learn(secret: string): void {
    this.#add(secretForms(secret));
  }

  /** Adds a URL's secrets: user and password, and the values of keys such as `api_key`. */
  learnUrl(address: string): void {
    this.#add(urlForms(address));
  }

  /** Adds all secrets of another redactor. */
  learnFrom(other: Redactor): void {
    this.#add(other.#own);
  }

  /** Returns the text without secrets. */
  text(text: string): string {
    let clean = text;
    for (const [form, replacement] of this.#known) {
      if (clean.includes(form)) clean = clean.replaceAll(form, replacement);
    }
    return clean;
  }

  /**
   * Returns the JSON of a value without secrets in its texts and keys. Numbers are unchanged. `space` as in
   * `JSON.stringify()`.
   */
  json(value: unknown, space?: number): string {
    const text = JSON.stringify(value, undefined, space);
    // Most values contain no secret.
    if (!this.#isIn(text)) return text;
    return JSON.stringify(this.#clean(JSON.parse(text)), undefined, space);
  }

  /** Returns a text without secrets. The numbers of a JSON text are unchanged, as with `json()`. */
  jsonText(text: string): string {
    if (!this.#isIn(text)) return text;
    try {
      return this.json(JSON.parse(text));
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      return this.text(text);
    }
  }

  /** Returns a JSON-able value without secrets in its texts and keys. */
  clean<Value>(value: Value): Value {
    return JSON.parse(this.json(value)) as Value;
  }

  /** Returns a value without secrets in its texts and keys; the same object if it has none or is not JSON-able. */
  without<Value>(value: Value): Value {
    if (this.#known.length === 0) return value;
    if (typeof value === "string") return this.text(value) as Value & string;
    try {
      return this.#isIn(JSON.stringify(value) ?? "") ? this.clean(value) : value;
    } catch (error) {
      if (error instanceof TypeError) return value;
      throw error;
    }
  }

  /** Returns a thrown value without secrets; an error is changed in place (see `error()`). */
  thrown(thrown: unknown): unknown {
    this.error(thrown);
    try {
      return thrown instanceof Error ? thrown : this.without(thrown);
    } catch {
      // A foreign object that cannot be read is left alone.
      return thrown;
    }
  }

  /** Same as `clean()` for a large value, in turns; returns the same object if it has no secrets. */
  async cleanInTurns<Value>(value: Value): Promise<Value> {
    const [longest] = this.#known;
    if (longest === undefined) return value;
    let text = "";
    for (const piece of jsonPieces(value)) {
      text += piece;
      if (text.length < stretchLength) continue;
      await takeTurn();
      if (this.#isIn(text)) return this.clean(value);
      // Keeps the end of the stretch, so that a secret across the border is found in the next stretch.
      text = text.slice(-longest[0].length);
    }
    return this.#isIn(text) ? this.clean(value) : value;
  }

  /** Removes secrets from an error's message and other texts, and from those of its causes. */
  error(error: unknown): void {
    try {
      // A longer chain of causes is a loop.
      for (let depth = 0, current = error; depth < 16 && current instanceof Error; depth++) {
        for (const name of new Set(["message", "stack", ...Object.keys(current)])) {
          this.#cleanMember(current, name);
        }
        current = current.cause;
      }
    } catch {
      // A foreign object that cannot be read cannot be printed either.
    }
  }

  /** All secrets, longest first, so that none hides a part of a longer one. */
  get #known(): readonly Form[] {
    const shared = formsOfProcess();
    const ownCount = this.#own.size;
    if (ownCount === 0) return shared;
    if (this.#merged.ownCount !== ownCount || this.#merged.shared !== shared) {
      this.#merged = { ownCount, shared, forms: sorted([...shared, ...this.#own]) };
    }
    return this.#merged.forms;
  }

  #isIn(text: string): boolean {
    return this.#known.some(([form]) => text.includes(form));
  }

  /** Cleans one member of an error. A foreign error's member that cannot be read or replaced is left alone. */
  #cleanMember(error: Error, name: string): void {
    try {
      const value = (error as unknown as Readonly<Record<string, unknown>>)[name];
      if (typeof value !== "string" && !Array.isArray(value)) return;
      // Most members have no secret, and some, such as an abort's, are read-only.
      if (!this.#isIn(typeof value === "string" ? value : JSON.stringify(value))) return;
      const clean = this.#clean(value);
      Object.defineProperty(error, name, { value: clean, configurable: true, writable: true });
    } catch {
      // Output is cleaned again when it is written (see `text()`).
    }
  }

  #clean(value: unknown): unknown {
    if (typeof value === "string") return this.text(value);
    if (Array.isArray(value)) return value.map((item) => this.#clean(item));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, member]) => [this.text(key), this.#clean(member)]),
    );
  }

  #add(forms: Iterable<Form>): void {
    for (const [form, replacement] of forms) {
      if (!this.#own.has(form)) this.#own.set(form, replacement);
    }
  }
}

/** Leaves everything as it is. */
export const noRedactor: Pick<Redactor, "thrown" | "without"> = {
  thrown: (thrown) => thrown,
  without: (value) => value,
};

/** Unique forms, longest first. */
function sorted(forms: Iterable<Form>): readonly Form[] {
  return [...new Map(forms)].toSorted(([one], [other]) => other.length - one.length);
}

/** The forms of a secret, also without the line ending that it may have in a file. */
function secretForms(secret: string): readonly Form[] {
  return [...new Set([secret, secret.trim()])].flatMap((text): readonly Form[] =>
    text === ""
      ? []
      : [
          ...formsOf(text).map((form) => [form, redactionMark] as const),
          [`Bearer ${text}`, `Bearer ${redactionMark}`],
        ],
  );
}

function urlForms(address: string): readonly Form[] {
  if (!URL.canParse(address)) return [];
  const { username, password, searchParams } = new URL(address);
  const forms: Form[] = [];
  if (username !== "" || password !== "") {
    const user = decodeOrKeep(username);
    const pair = `${user}:${decodeOrKeep(password)}`;
    for (const form of [`${username}:${password}@`, `${pair}@`, `${username}@`]) {
      forms.push([`//${form}`, `//${redactionMark}@`]);
    }
    forms.push(
      ...secretForms(pair),
      ...secretForms(password === "" ? user : decodeOrKeep(password)),
    );
  }
  for (const [name, value] of searchParams) {
    if (!isSecretParameter(name) || value === "") continue;
    for (const form of [value, encodeURIComponent(value)]) {
      forms.push([`${name}=${form}`, `${name}=${redactionMark}`]);
    }
    forms.push(...secretForms(value));
  }
  return forms;
}

/** The number of secrets that the process keeps, the latest ones. Each text is searched for all of them. */
const mostSecrets = 512;

/**
 * Secrets that parts of this process got outside of a run's settings, with their forms; for example the variables
 * of an MCP server that an environment starts. They apply to the complete process: such a part knows no run, and
 * its output reaches all runs.
 */
const secretsOfProcess = new Map<string, readonly Form[]>();

let knownOfProcess: readonly Form[] | undefined = [];

function formsOfProcess(): readonly Form[] {
  knownOfProcess ??= sorted([...secretsOfProcess.values()].flat());
  return knownOfProcess;
}

/** Makes every redactor of this process hide secrets, and the secrets in URLs. */
export function hideEverywhere({
  secrets = [],
  urls = [],
}: {
  readonly secrets?: Iterable<string>;
  readonly urls?: Iterable<string>;
}): void {
  for (const secret of secrets) hide(secret, secretForms);
  for (const url of urls) hide(url, urlForms);
}

/**
 * Returns the last index at or before `end` where a text can be cut. The cut is neither inside a surrogate pair nor inside
 * a secret of this process, because half of a secret would not be recognized.
 */
export function safeCutIndex(text: string, end: number): number {
  let found = end;
  for (let before = -1; before !== found;) {
    before = found;
    for (const [form] of formsOfProcess()) {
      const from = Math.max(0, found - form.length + 1);
      const start = text.slice(from, found + form.length - 1).indexOf(form);
      if (start >= 0) found = from + start;
    }
  }
  return /[\ud800-\udbff]/.test(text.charAt(found - 1)) ? found - 1 : found;
}

/**
 * Removes the rest of a secret from the start of a text that begins within the secret: the rest would not be
 * recognized.
 *
 * @param secrets - Further secrets beside those of this process.
 */
export function withoutCutSecret(text: string, secrets: readonly string[]): string {
  const forms = [
    ...secrets,
    ...secrets.flatMap(formsOf),
    ...formsOfProcess().map(([form]) => form),
  ];
  // Shorter rests may be parts of ordinary words.
  let longest = 3;
  for (const form of forms) {
    for (let at = 1; form.length - at > longest; at++) {
      if (text.startsWith(form.slice(at))) longest = form.length - at;
    }
  }
  return longest === 3 ? text : text.slice(longest);
}

function hide(text: string, formsOfText: (text: string) => readonly Form[]): void {
  if (secretsOfProcess.has(text)) return;
  secretsOfProcess.set(text, formsOfText(text));
  if (secretsOfProcess.size > mostSecrets) {
    const [oldest] = secretsOfProcess.keys();
    secretsOfProcess.delete(oldest!);
  }
  knownOfProcess = undefined;
}
