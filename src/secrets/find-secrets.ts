import { decodeOrKeep } from "../../packages/python-values/src/support/decode-or-keep.ts";
import { parseJsonText } from "../json/parse-json.ts";
import { Redactor } from "./redactor.ts";
import { isDigestName, isSecretName } from "./secret-name.ts";

/** The secrets found: texts, and URLs with users, passwords or keys. */
interface FoundSecrets {
  readonly secrets: readonly string[];
  readonly urls: readonly string[];
}

const noSecrets: FoundSecrets = { secrets: [], urls: [] };

/**
 * Finds the secrets among named values: variables or headers. A value is a secret if its name says so or if it
 * looks like a key.
 */
export function secretsOfNamed(values: Readonly<Record<string, string>>): FoundSecrets {
  return together(Object.entries(values).map(([name, value]) => ofNamed(name, value)));
}

/**
 * Finds the secrets among a program's arguments: values of flags by name (`--api-key X`, `--token=X`), variables
 * (`NAME=X`), headers (`Name: X`), URLs, shell commands, and values that look like keys.
 */
export function secretsOfArguments(args: readonly string[]): FoundSecrets {
  return ofWords(args, isKey);
}

/** Finds the secrets of a shell command; quotes around words are removed. */
export function secretsOfCommand(line: string): FoundSecrets {
  return ofWords(wordsOf(line), isKey);
}

function ofWords(words: readonly string[], looksSecret: (text: string) => boolean): FoundSecrets {
  return together(
    words.flatMap((word, index) => {
      const before = words[index - 1] ?? "";
      return [ofArgument(word, { before, looksSecret }), ofLine(word, before)];
    }),
  );
}

function ofArgument(
  argument: string,
  { before, looksSecret }: { before: string; looksSecret: (text: string) => boolean },
): FoundSecrets {
  const [, name, sign, value] = /^(?:--?)?([\w.-]+)(=|:\s*)(.+)$/s.exec(argument) ?? [];
  const isNamed = sign === "=" || /^:\s/.test(sign ?? "") || isSecretName(name ?? "");
  if (name !== undefined && value !== undefined && isNamed) {
    return ofNamed(name, value, looksSecret);
  }
  const isValue = /^--?\w[^=]*$/.test(before) && !argument.startsWith("-");
  if (isValue && isDigest(before, argument)) return noSecrets;
  const passwords = isValue ? passwordsOfUser(before, argument) : [];
  const isSecret = (isValue && isSecretName(before)) || looksSecret(argument);
  if (isSecret) return { secrets: [argument, ...passwords], urls: [] };
  return together([ofText(argument), { secrets: passwords, urls: [] }]);
}

/**
 * Finds the password in `-u name:password`, as curl takes it. Numeric ids, and a group with the user's name, are
 * not passwords.
 */
function passwordsOfUser(flag: string, value: string): readonly string[] {
  const [, name, password] = /^([^:]*):(.+)$/s.exec(value) ?? [];
  const isFlag = /^(?:-u|(?:--)?(?:proxy-)?user(?:name)?)$/.test(flag);
  if (!isFlag || password === undefined || password === name || /^\d+$/.test(password)) return [];
  return [password];
}

/**
 * Finds the secrets of an argument with several words: a shell command, as after `sh -c`, or a text that may be
 * one. In the latter case, a word is not a secret merely because it looks like a key: the text may be a sentence
 * with an order's number.
 */
function ofLine(argument: string, before: string): FoundSecrets {
  if (!/\s/.test(argument)) return noSecrets;
  const words = wordsOf(argument);
  if (words.length === 1 && words[0] === argument) return noSecrets;
  const isShell = /^(?:-[a-z]*c|\/c|-command)$/i.test(before);
  return ofWords(words, isShell ? isKey : (word) => marked.test(word));
}

/** The words of a shell command, without their outer quotes. */
function wordsOf(line: string): readonly string[] {
  return [...line.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"';|])+/g)].map(([word]) =>
    word.replaceAll(/"([^"]*)"|'([^']*)'/g, "$1$2"),
  );
}

/** Removes the secrets of the arguments, or of the settings, from an error message that repeats them. */
export function withoutSecretsOf(args: readonly string[], complaint: string): string {
  const { secrets, urls } = secretsOfArguments(args);
  const redactor = new Redactor(secrets);
  for (const url of urls) redactor.learnUrl(url);
  return redactor.text(complaint);
}

/** Finds the secrets in a URL, including path parts and query values that look like keys. */
export function ofUrl(url: string): FoundSecrets {
  if (!url.includes("://")) return noSecrets;
  if (!URL.canParse(url)) return { secrets: passwordsOf(url), urls: [] };
  const { pathname, searchParams } = new URL(url);
  const parts = [...pathname.split("/"), ...searchParams.values()];
  return { secrets: parts.filter((part) => part.length >= 20 && isKey(part)), urls: [url] };
}

/** Finds the secrets in an address that may lack its scheme, such as `name:password@proxy:3128`. */
export function ofAddress(address: string): FoundSecrets {
  return ofUrl(address.includes("://") ? address : `http://${address}`);
}

/** Finds the password in an address that is not a URL, such as one with several hosts or with `#` in the password. */
function passwordsOf(address: string): readonly string[] {
  const rest = address.slice(address.indexOf("://") + "://".length);
  // A password may contain `@`, and so may the text after the hosts.
  return [...new Set([rest.indexOf("@"), rest.lastIndexOf("@")])].flatMap((end) => {
    const user = rest.slice(0, Math.max(0, end));
    const password = user.slice(user.indexOf(":") + 1);
    return password === "" ? [] : [...new Set([password, decodeOrKeep(password)])];
  });
}

/** Returns a URL for messages: without user, query, and path parts that look like keys. */
export function shownUrl(url: string): string {
  if (!URL.canParse(url) || !url.includes("://")) {
    return url.replace(/^.*@/s, "…@").replace(/[?#].*$/s, "?…");
  }
  const { protocol, host, pathname } = new URL(url);
  let shown = `${protocol}//${host}${pathname}`;
  for (const secret of ofUrl(url).secrets) shown = shown.replace(secret, "…");
  // The URL class adds a slash that was not written; it is removed.
  return pathname === "/" && !/^[^?#]*\/\/[^/?#]*\//.test(url) ? shown.slice(0, -1) : shown;
}

function ofNamed(name: string, value: string, looksSecret = isKey): FoundSecrets {
  const found = ofText(value);
  if (isSecretName(name)) {
    const cookies = /cookie/i.test(name) ? value.split(/[;=]\s*/) : [];
    return {
      ...found,
      secrets: [...found.secrets, ...credentialsOf(value), ...cookies.filter(isKey)],
    };
  }
  if (isUrl(value) || isDigest(name, value)) return found;
  const own = [...passwordsOfUser(name, value), ...(looksSecret(value) ? [value] : [])];
  return { ...found, secrets: [...found.secrets, ...own] };
}

/** True for a URL with a host; false for addresses such as `jdbc:sqlserver://host;password=X`. */
function isUrl(text: string): boolean {
  return text.includes("://") && URL.canParse(text) && new URL(text).host !== "";
}

function isDigest(name: string, value: string): boolean {
  return isDigestName(name) && /^(?:sha\d+:)?[\da-f]{7,128}$/i.test(value);
}

/** Finds the secrets within a URL, JSON, or a text with pairs, headers and URLs. */
function ofText(text: string): FoundSecrets {
  if (isUrl(text)) return ofUrl(text);
  const value = /^\s*[[{]/.test(text) ? parseJsonText(text) : undefined;
  if (typeof value === "object" && value !== null) return ofJson(value);
  // URLs do not nest, so a long text is scanned once.
  const urls = text.matchAll(/(?<![a-z\d+.-])[a-z][a-z\d+.-]*:\/\/[^\s"'<>`]+/gi);
  return together([
    { secrets: [...ofPairs(text), ...ofMembers(text)], urls: [] },
    ...[...urls].map(([url]) => ofUrl(url)),
    ...(URL.canParse(text) ? [ofUrl(text)] : []),
  ]);
}

/** The deepest nesting of JSON that is searched. */
const jsonDepth = 64;

function ofJson(value: unknown, depth = 0): FoundSecrets {
  if (typeof value !== "object" || value === null || depth === jsonDepth) return noSecrets;
  if (Array.isArray(value)) {
    const words = value.filter((item) => typeof item === "string");
    return together([secretsOfArguments(words), ...value.map((item) => ofJson(item, depth + 1))]);
  }
  const { name, key = name, value: its } = value as Readonly<Record<string, unknown>>;
  const isPair = typeof key === "string" && typeof its === "string";
  return together([
    ...(isPair ? [ofNamed(key, its)] : []),
    ...Object.entries(value).map(([member, item]) =>
      typeof item === "string" ? ofNamed(member, item) : ofJson(item, depth + 1),
    ),
  ]);
}

/** Finds the secret values of pairs such as `Host=db;Password=X`, `password='X'` and `api-key=X,other=Y`. */
function ofPairs(text: string): readonly string[] {
  const pairs = [
    ...[...text.matchAll(/(?<![\w.-])([\w.-]+)=("[^"]*"|'[^']*'|\{[^{}]*\}|[^;&\s"']+)/g)].map(
      ([, name = "", value = ""]) => [name, value] as const,
    ),
    // A value may have spaces, up to a semicolon.
    ...text.split(/[;\n]/).map((part) => {
      const sign = part.indexOf("=");
      return [part.slice(0, Math.max(0, sign)).trim(), part.slice(sign + 1).trim()] as const;
    }),
  ];
  return [...new Set(pairs.flatMap(([name, value]) => (holdsSecret(name, value) ? [value] : [])))]
    .map(withoutQuotes)
    .flatMap((value) => (value.includes(",") ? [value, value.replace(/,.*$/s, "")] : [value]))
    .filter((value) => value !== "");
}

/** Finds the secret values of lines such as `X-Api-Key: X`, in headers and YAML but not in sentences. */
function ofMembers(text: string): readonly string[] {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  if (!lines.every((line) => /^\s*(?:- |#|["']?[A-Za-z][\w.-]*["']?\s*:)/.test(line))) return [];
  return lines.flatMap((line) => {
    const sign = line.indexOf(":");
    const name = withoutQuotes(line.slice(0, Math.max(0, sign)).trim().replace(/^- /, ""));
    const value = withoutQuotes(line.slice(sign + 1).trim());
    if (!/^[A-Za-z][\w.-]*$/.test(name) || value === "" || value.startsWith("//")) return [];
    if (isSecretName(name)) return credentialsOf(value);
    return isKey(value) && !isDigest(name, value) ? [value] : [];
  });
}

/** True if the name denotes a secret. `PWD` in a text of pairs does, unless its value is a folder. */
function holdsSecret(name: string, value: string): boolean {
  if (name === "" || name.length > longestName) return false;
  return isSecretName(name) || (/^pwd$/i.test(name) && !/^(?:[/~]|\w:\\)/.test(value));
}

const longestName = 100;

function withoutQuotes(text: string): string {
  const [, one, two, three] = /^(?:"(.*)"|'(.*)'|\{(.*)\})$/s.exec(text) ?? [];
  return one ?? two ?? three ?? text;
}

/** A value, and the part after a scheme such as `Bearer`; a base64 pair is also decoded. */
function credentialsOf(value: string): readonly string[] {
  const [, scheme = "", rest] = /^(\w+) (.+)$/.exec(value) ?? [];
  if (rest === undefined) return [value];
  if (scheme.toLowerCase() !== "basic") return [value, rest];
  const pair = Buffer.from(rest, "base64").toString("utf8");
  return [value, rest, pair, pair.slice(pair.indexOf(":") + 1)];
}

/** Prefixes by which services mark their keys. */
const marked =
  /^(?:[sprk]k[-_]|gh[pousr]_|github_pat_|glpat-|xox[a-z]-|hf_|AKIA|ASIA|AIza|eyJ|ya29\.|npm_|pypi-|SG\.|tw-)/;

/** A point in time, such as the start time of a server's clock. */
const time = /^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-][\d:]+)?$/;

/** A part of a name such as `gpt-4o-mini-2024-07-18` or `us-east-1`: a word, a number, or a short mix. */
const namePart = /^(?:[a-z]+\d{0,2}|\d{1,8}|[a-z\d]{1,4})$/i;

/**
 * True for a text that looks like a key: at least 12 characters, no spaces, letters mixed with digits, and not a
 * path, file, package or name.
 */
function isKey(text: string): boolean {
  if (/^-----BEGIN [A-Z ]*PRIVATE KEY/.test(text)) return true;
  if (text.length < 8 || /[\s/\\;{]|=[^=]/.test(text) || text.startsWith("-")) return false;
  if (marked.test(text)) return true;
  if (text.length < 12 || text.includes("@") || time.test(text) || /\.[a-z]\w{0,4}$/i.test(text))
    return false;
  return !text.split(/[-_.:]/).every((part) => part === "" || namePart.test(part));
}

function together(found: readonly FoundSecrets[]): FoundSecrets {
  return {
    secrets: [...new Set(found.flatMap(({ secrets }) => secrets))],
    urls: [...new Set(found.flatMap(({ urls }) => urls))],
  };
}
