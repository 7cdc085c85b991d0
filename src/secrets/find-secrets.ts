import { parseJsonText } from "../json/parse-json.ts";
import { Redactor } from "./redactor.ts";
import { isDigestName, isSecretName } from "./secret-name.ts";

/** What is to be hidden: texts, and URLs whose users, passwords and keys are. */
interface FoundSecrets {
  readonly secrets: readonly string[];
  readonly urls: readonly string[];
}

/**
 * Finds the secrets among named values: variables or headers. A value counts as one by its name, or where it looks
 * like a key by itself.
 */
export function secretsOfNamed(values: Readonly<Record<string, string>>): FoundSecrets {
  return together(Object.entries(values).map(([name, value]) => ofNamed(name, value)));
}

/**
 * Finds the secrets among a program's arguments: values of flags by their names (`--api-key X`, `--token=X`),
 * variables (`NAME=X`), headers (`Name: X`), URLs, and what looks like a key by itself.
 */
export function secretsOfArguments(args: readonly string[]): FoundSecrets {
  return together(
    args.map((argument, index) => {
      const before = args[index - 1] ?? "";
      const [, name, sign, value] = /^(?:--?)?([\w.-]+)(=|:\s*)(.+)$/s.exec(argument) ?? [];
      const isNamed = sign === "=" || /^:\s/.test(sign ?? "") || isSecretName(name ?? "");
      if (name !== undefined && value !== undefined && isNamed) return ofNamed(name, value);
      const isValue = /^--?\w[^=]*$/.test(before) && !argument.startsWith("-");
      if (isValue && isDigest(before, argument)) return { secrets: [], urls: [] };
      const isSecret = (isValue && isSecretName(before)) || isKey(argument);
      if (isSecret) return { secrets: [argument], urls: [] };
      const found = ofUrl(argument);
      return found.urls.length > 0 ? found : within(argument);
    }),
  );
}

/** Finds the secrets of a line for the shell; quotes are taken off its words. */
export function secretsOfCommand(line: string): FoundSecrets {
  const words = [...line.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g)].map(([word]) =>
    word.replaceAll(/["']/g, ""),
  );
  return secretsOfArguments(words);
}

/** Takes out of a complaint what is secret of the arguments, or of the settings, that it repeats. */
export function withoutSecretsOf(args: readonly string[], complaint: string): string {
  const { secrets, urls } = secretsOfArguments(args);
  const redactor = new Redactor(secrets);
  for (const url of urls) redactor.learnUrl(url);
  return redactor.text(complaint);
}

/** Finds what is secret in a URL: also the parts of its path that look like keys. */
export function ofUrl(url: string): FoundSecrets {
  if (!URL.canParse(url) || !url.includes("://")) return { secrets: [], urls: [] };
  const { pathname } = new URL(url);
  const secrets = pathname.split("/").filter((part) => part.length >= 20 && isKey(part));
  return { secrets, urls: [url] };
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

function ofNamed(name: string, value: string): FoundSecrets {
  const found = ofUrl(value);
  if (isSecretName(name)) {
    const cookies = /cookie/i.test(name) ? value.split(/[;=]\s*/) : [];
    return {
      ...found,
      secrets: [...found.secrets, ...credentialsOf(value), ...cookies.filter(isKey)],
    };
  }
  if (found.urls.length > 0) return found;
  if (isDigest(name, value)) return found;
  return isKey(value) ? { ...found, secrets: [value] } : within(value);
}

function isDigest(name: string, value: string): boolean {
  return isDigestName(name) && /^(?:sha\d+:)?[\da-f]{7,128}$/i.test(value);
}

/** Finds the secrets within a value that is a JSON object, or has pairs such as `Host=db;Password=X`. */
function within(value: string): FoundSecrets {
  const object = value.trimStart().startsWith("{") ? parseJsonText(value) : undefined;
  if (typeof object === "object" && object !== null) {
    return together(
      Object.entries(object).map(([name, member]) =>
        typeof member === "string" ? ofNamed(name, member) : within(JSON.stringify(member)),
      ),
    );
  }
  const pairs = [...value.matchAll(/(?<![\w.-])([\w.-]+)=([^;&\s"']+)/g)];
  const secrets = pairs.flatMap(([, name = "", its = ""]) => (isSecretName(name) ? [its] : []));
  return { secrets, urls: [] };
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
    secrets: found.flatMap(({ secrets }) => secrets),
    urls: found.flatMap(({ urls }) => urls),
  };
}
