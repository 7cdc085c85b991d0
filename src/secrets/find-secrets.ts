import { parseJsonText } from "../json/parse-json.ts";
import { Redactor } from "./redactor.ts";
import { isDigestName, isSecretName } from "./secret-name.ts";

/** What is to be hidden: texts, and URLs whose users, passwords and keys are. */
interface FoundSecrets {
  readonly secrets: readonly string[];
  readonly urls: readonly string[];
}

const noSecrets: FoundSecrets = { secrets: [], urls: [] };

/**
 * Finds the secrets among named values: variables or headers. A value counts as one by its name, or where it looks
 * like a key by itself.
 */
export function secretsOfNamed(values: Readonly<Record<string, string>>): FoundSecrets {
  return together(Object.entries(values).map(([name, value]) => ofNamed(name, value)));
}

/**
 * Finds the secrets among a program's arguments: values of flags by their names (`--api-key X`, `--token=X`),
 * variables (`NAME=X`), headers (`Name: X`), URLs, lines for a shell, and what looks like a key by itself.
 */
export function secretsOfArguments(args: readonly string[]): FoundSecrets {
  return ofWords(args, isKey);
}

/** Finds the secrets of a line for the shell; quotes are taken off its words. */
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

/** Finds the password in `-u name:password`, as curl has it; ids, and a group with the user's name, are none. */
function passwordsOfUser(flag: string, value: string): readonly string[] {
  const [, name, password] = /^([^:]*):(.+)$/s.exec(value) ?? [];
  const isFlag = /^(?:-u|(?:--)?(?:proxy-)?user(?:name)?)$/.test(flag);
  if (!isFlag || password === undefined || password === name || /^\d+$/.test(password)) return [];
  return [password];
}

/**
 * Finds the secrets of an argument of several words: a line for a shell, as behind `sh -c`, or what may be one. In the
 * latter a word is none by its looks alone: it may be a sentence that names an order.
 */
function ofLine(argument: string, before: string): FoundSecrets {
  if (!/\s/.test(argument)) return noSecrets;
  const words = wordsOf(argument);
  if (words.length === 1 && words[0] === argument) return noSecrets;
  const isShell = /^(?:-[a-z]*c|\/c|-command)$/i.test(before);
  return ofWords(words, isShell ? isKey : (word) => marked.test(word));
}

/** The words of a line for a shell, without their outer quotes. */
function wordsOf(line: string): readonly string[] {
  return [...line.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"';|])+/g)].map(([word]) =>
    word.replaceAll(/"([^"]*)"|'([^']*)'/g, "$1$2"),
  );
}

/** Takes out of a complaint what is secret of the arguments, or of the settings, that it repeats. */
export function withoutSecretsOf(args: readonly string[], complaint: string): string {
  const { secrets, urls } = secretsOfArguments(args);
  const redactor = new Redactor(secrets);
  for (const url of urls) redactor.learnUrl(url);
  return redactor.text(complaint);
}

/** Finds what is secret in a URL: also the parts of its path and the values of its query that look like keys. */
export function ofUrl(url: string): FoundSecrets {
  if (!url.includes("://")) return noSecrets;
  if (!URL.canParse(url)) return { secrets: passwordsOf(url), urls: [] };
  const { pathname, searchParams } = new URL(url);
  const parts = [...pathname.split("/"), ...searchParams.values()];
  return { secrets: parts.filter((part) => part.length >= 20 && isKey(part)), urls: [url] };
}

/** Finds the password in an address that is no URL, such as one of several hosts or with `#` in the password. */
function passwordsOf(address: string): readonly string[] {
  const rest = address.slice(address.indexOf("://") + "://".length);
  // A password may hold `@`, and so may what follows the hosts.
  return [...new Set([rest.indexOf("@"), rest.lastIndexOf("@")])].flatMap((end) => {
    const user = rest.slice(0, Math.max(0, end));
    const password = user.slice(user.indexOf(":") + 1);
    return password === "" ? [] : [...new Set([password, decodeOrKeep(password)])];
  });
}

function decodeOrKeep(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (!(error instanceof URIError)) throw error;
    return text;
  }
}

/** A URL as messages show it: without user, query, and the parts of its path that look like keys. */
export function shownUrl(url: string): string {
  if (!URL.canParse(url) || !url.includes("://")) {
    return url.replace(/^.*@/s, "…@").replace(/[?#].*$/s, "?…");
  }
  const { protocol, host, pathname } = new URL(url);
  let shown = `${protocol}//${host}${pathname}`;
  for (const secret of ofUrl(url).secrets) shown = shown.replace(secret, "…");
  // The URL adds a slash that was not written: it is not shown.
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

/** Tells a URL with a host from such as `jdbc:sqlserver://host;password=X`, in which no part is one for a URL. */
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
  // None begins within another, so that a long text is gone through once.
  const urls = text.matchAll(/(?<![a-z\d+.-])[a-z][a-z\d+.-]*:\/\/[^\s"'<>`]+/gi);
  return together([
    { secrets: [...ofPairs(text), ...ofMembers(text)], urls: [] },
    ...[...urls].map(([url]) => ofUrl(url)),
    ...(URL.canParse(text) ? [ofUrl(text)] : []),
  ]);
}

/** Depth of JSON that is looked into. */
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

/** Finds values of pairs such as `Host=db;Password=X`, `password='X'` and `api-key=X,other=Y`. */
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

/** Finds values of lines such as `X-Api-Key: X`: headers and YAML, and no text in sentences. */
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

/** Tells the name of a secret, and in a text of pairs also `PWD` where its value is no folder. */
function holdsSecret(name: string, value: string): boolean {
  if (name === "" || name.length > longestName) return false;
  return isSecretName(name) || (/^pwd$/i.test(name) && !/^(?:[/~]|\w:\\)/.test(value));
}

const longestName = 100;

function withoutQuotes(text: string): string {
  const [, one, two, three] = /^(?:"(.*)"|'(.*)'|\{(.*)\})$/s.exec(text) ?? [];
  return one ?? two ?? three ?? text;
}

/** A value with what follows a scheme such as `Bearer`, and a pair in base64 as a pair. */
function credentialsOf(value: string): readonly string[] {
  const [, scheme = "", rest] = /^(\w+) (.+)$/.exec(value) ?? [];
  if (rest === undefined) return [value];
  if (scheme.toLowerCase() !== "basic") return [value, rest];
  const pair = Buffer.from(rest, "base64").toString("utf8");
  return [value, rest, pair, pair.slice(pair.indexOf(":") + 1)];
}

/** Beginnings by which services mark their keys. */
const marked =
  /^(?:[sprk]k[-_]|gh[pousr]_|github_pat_|glpat-|xox[a-z]-|hf_|AKIA|ASIA|AIza|eyJ|ya29\.|npm_|pypi-|SG\.|tw-)/;

/** A point of time, such as the one at which a server's clock is to stand. */
const time = /^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-][\d:]+)?$/;

/** A part of a name such as `gpt-4o-mini-2024-07-18` or `us-east-1`: a word, a number, or both if it is short. */
const namePart = /^(?:[a-z]+\d{0,2}|\d{1,8}|[a-z\d]{1,4})$/i;

/**
 * Tells what looks like a key: a text of 12 characters or more, without spaces, in which letters and digits are
 * mixed, and which is no path, file, package or name.
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
