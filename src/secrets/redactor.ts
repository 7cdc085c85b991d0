import { jsonPieces } from "../json/json-pieces.ts";
import { isSecretName } from "./secret-name.ts";
import { formsOf } from "./secret-forms.ts";
import { takeTurn } from "../async/take-turn.ts";

/** What stands in the place of a secret. */
export const redactionMark = "[redacted]";

/** Characters that are looked through at once. */
const stretchLength = 64 * 1024;

type Form = readonly [form: string, replacement: string];

/**
 * Takes secrets out of what leaves the process: texts, JSON lines, errors. Each also takes out what
 * `hideEverywhere()` was given. Besides a secret itself its
 * spellings in JSON strings (also of JSON within JSON), URLs and base64 are found, the latter also within
 * a longer text.
 */
export class Redactor {
  /** Looked for beside what the process knows, with what stands in its place. It only grows. */
  readonly #own = new Map<string, string>();
  /** Both together, as long as they stay as they are. */
  #merged = { ownCount: 0, shared: [] as readonly Form[], forms: [] as readonly Form[] };

  /** Learns secrets such as API keys. */
  constructor(secrets: Iterable<string> = []) {
    for (const secret of secrets) this.learn(secret);
  }

  /** Learns one more secret; the empty text is none. */
  learn(secret: string): void {
    this.#add(secretForms(secret));
  }

  /** Learns what is secret in a URL: user and password, and the values of such keys as `api_key`. */
  learnUrl(address: string): void {
    this.#add(urlForms(address));
  }

  /** Learns all that another knows. */
  learnFrom(other: Redactor): void {
    this.#add(other.#own);
  }

  /** The text without its secrets. */
  text(text: string): string {
    let clean = text;
    for (const [form, replacement] of this.#known) {
      if (clean.includes(form)) clean = clean.replaceAll(form, replacement);
    }
    return clean;
  }

  /**
   * The JSON of a value, without the secrets of its texts and keys; numbers stay what they are.
   * `space` as in `JSON.stringify()`.
   */
  json(value: unknown, space?: number): string {
    const text = JSON.stringify(value, undefined, space);
    // Nearly always there is nothing to do.
    if (!this.#isIn(text)) return text;
    return JSON.stringify(this.#clean(JSON.parse(text)), undefined, space);
  }

  /** A text that is JSON, as a rule: its numbers stay what they are, as in `json()`. */
  jsonText(text: string): string {
    if (!this.#isIn(text)) return text;
    try {
      return this.json(JSON.parse(text));
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      return this.text(text);
    }
  }

  /** A JSON-able value without the secrets of its texts and keys. */
  clean<Value>(value: Value): Value {
    return JSON.parse(this.json(value)) as Value;
  }

  /**
   * A value without the secrets of its texts and keys; itself where it holds none, or is nothing that JSON
   * can say.
   */
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

  /** What was thrown, without its secrets: an error is mended (see `error()`). */
  thrown(thrown: unknown): unknown {
    this.error(thrown);
    try {
      return thrown instanceof Error ? thrown : this.without(thrown);
    } catch {
      // It may be anyone's: what cannot be read stays.
      return thrown;
    }
  }

  /** `clean()` of a large value, looked through in turns; itself where it holds no secret. */
  async cleanInTurns<Value>(value: Value): Promise<Value> {
    const [longest] = this.#known;
    if (longest === undefined) return value;
    let text = "";
    for (const piece of jsonPieces(value)) {
      text += piece;
      if (text.length < stretchLength) continue;
      await takeTurn();
      if (this.#isIn(text)) return this.clean(value);
      // What stands astride two stretches is found in the second.
      text = text.slice(-longest[0].length);
    }
    return this.#isIn(text) ? this.clean(value) : value;
  }

  /** Takes the secrets out of an error's message and further texts, and out of those of its causes. */
  error(error: unknown): void {
    try {
      // A chain of causes longer than this is a loop.
      for (let depth = 0, current = error; depth < 16 && current instanceof Error; depth++) {
        for (const name of new Set(["message", "stack", ...Object.keys(current)])) {
          this.#cleanMember(current, name);
        }
        current = current.cause;
      }
    } catch {
      // It may be anyone's: what cannot be read cannot be told either.
    }
  }

  /** Longest first, so that none hides a part of another. */
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

  /** Errors may be anyone's: what cannot be read, written or replaced stays, and nothing is thrown. */
  #cleanMember(error: Error, name: string): void {
    try {
      const value = (error as unknown as Readonly<Record<string, unknown>>)[name];
      if (typeof value !== "string" && !Array.isArray(value)) return;
      // Most have nothing to hide, and some of these, such as an abort's, cannot be replaced.
      if (!this.#isIn(typeof value === "string" ? value : JSON.stringify(value))) return;
      const clean = this.#clean(value);
      Object.defineProperty(error, name, { value: clean, configurable: true, writable: true });
    } catch {
      // What writes its texts cleans them once more (see `text()`).
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

/** Each form once, longest first. */
function sorted(forms: Iterable<Form>): readonly Form[] {
  return [...new Map(forms)].toSorted(([one], [other]) => other.length - one.length);
}

/** The spellings of a secret, also without the end of a line that it was read with from a file. */
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
    const user = decode(username);
    const pair = `${user}:${decode(password)}`;
    for (const form of [`${username}:${password}@`, `${pair}@`, `${username}@`]) {
      forms.push([`//${form}`, `//${redactionMark}@`]);
    }
    forms.push(...secretForms(pair), ...secretForms(password === "" ? user : decode(password)));
  }
  for (const [name, value] of searchParams) {
    if (!isSecretName(name) || value === "") continue;
    for (const form of [value, encodeURIComponent(value)]) {
      forms.push([`${name}=${form}`, `${name}=${redactionMark}`]);
    }
    forms.push(...secretForms(value));
  }
  return forms;
}

/** The number of secrets that the process keeps, the newest ones. Each text is searched for all of them. */
const mostSecrets = 512;

/**
 * What parts of this process were given beside a run's settings, such as the variables of an MCP server
 * that an environment's module starts, with its spellings. For the whole process: such a part knows no run, and what
 * it says reaches all of them.
 */
const secretsOfProcess = new Map<string, readonly Form[]>();

let knownOfProcess: readonly Form[] | undefined = [];

function formsOfProcess(): readonly Form[] {
  knownOfProcess ??= sorted([...secretsOfProcess.values()].flat());
  return knownOfProcess;
}

/** Has every redactor of this process take secrets out, and what is secret in URLs. */
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
 * Finds where a text may be cut at the latest, so that no secret of this process is cut in two: half of one would not be
 * known as one.
 */
export function wholeSecretsEnd(text: string, end: number): number {
  let found = end;
  for (let before = -1; before !== found;) {
    before = found;
    for (const [form] of formsOfProcess()) {
      const from = Math.max(0, found - form.length + 1);
      const start = text.slice(from, found + form.length - 1).indexOf(form);
      if (start >= 0) found = from + start;
    }
  }
  return found;
}

/**
 * Takes away the end of a secret with which a text begins whose beginning was cut off: it would not be known as one.
 *
 * @param secrets - Known beside those of this process.
 */
export function withoutCutSecret(text: string, secrets: readonly string[]): string {
  const forms = [
    ...secrets,
    ...secrets.flatMap(formsOf),
    ...formsOfProcess().map(([form]) => form),
  ];
  // Fewer characters begin other words as well.
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

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (!(error instanceof URIError)) throw error;
    return text;
  }
}
