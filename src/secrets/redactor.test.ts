import { describe, expect, test } from "vitest";
import { RolloutError } from "../errors.ts";
import { hideEverywhere, Redactor, safeCutIndex, withoutCutSecret } from "./redactor.ts";

const secret = 'sk-"s\\ecret/+ü 123';

/** A text, encoded as a JSON string `depth` times. */
function nested(text: string, depth: number): string {
  return depth === 0 ? text : nested(JSON.stringify(text).slice(1, -1), depth - 1);
}

describe("Redactor", () => {
  test.each([
    ["as it is", secret],
    ["in JSON", JSON.stringify(secret).slice(1, -1)],
    [
      "in Python's JSON",
      JSON.stringify(secret)
        .slice(1, -1)
        .replace("ü", String.raw`\u00fc`),
    ],
    ["in JSON within JSON", nested(secret, 2)],
    ["in JSON within JSON within JSON", nested(secret, 3)],
    ["percent-encoded", encodeURIComponent(secret)],
    [
      "percent-encoded in lower case",
      encodeURIComponent(secret).replaceAll(/%../g, (octet) => octet.toLowerCase()),
    ],
    ["as a form field", encodeURIComponent(secret).replaceAll("%20", "+")],
  ])("finds a secret %s", (_, form) => {
    expect(new Redactor([secret]).text(`a ${form} b ${form}`)).toBe("a [redacted] b [redacted]");
  });

  test.each([0, 1, 2, 3, 4, 5])("finds it in base64, %i bytes into a text", (offset) => {
    const whole = Buffer.from(`${"u".repeat(offset)}${secret}`);
    for (const encoding of ["base64", "base64url"] as const) {
      const clean = new Redactor([secret]).text(whole.toString(encoding));
      expect(clean).toContain("[redacted]");
      expect(clean.length).toBeLessThan(offset * 2 + "[redacted]".length + 6);
    }
  });

  test("hides a short key only after its scheme", () => {
    const redactor = new Redactor(["EMPTY", ""]);
    expect(redactor.text("Bearer EMPTY is EMPTY")).toBe("Bearer [redacted] is EMPTY");
  });

  test.each([
    ["http://me:pw@host:1/v1?x=1", "http://[redacted]@host:1/v1?x=1"],
    ["http://me%40x:p%20w@host/", "http://[redacted]@host/"],
    ["http://token@host/", "http://[redacted]@host/"],
    [
      "http://host/?api_key=a1&key=b&model=m",
      "http://host/?api_key=[redacted]&key=[redacted]&model=m",
    ],
    [
      "http://host/?code=a1&SAMLResponse=b&session_id=c&codec=d&country_code=e",
      "http://host/?code=[redacted]&SAMLResponse=[redacted]&session_id=[redacted]&codec=d&country_code=e",
    ],
  ])("finds the secrets in %s", (url, clean) => {
    const redactor = new Redactor();
    redactor.learnUrl(url);
    expect(redactor.text(`at ${url}.`)).toBe(`at ${clean}.`);
  });

  test("finds a URL's password that a server repeats", () => {
    const redactor = new Redactor();
    redactor.learnUrl("http://me:long%20password@host/");
    const basic = Buffer.from("me:long password").toString("base64");
    expect(redactor.text(`Basic ${basic}; long password`)).toMatch(
      /^Basic \[redacted\].?=*; \[redacted\]$/,
    );
  });

  test("json() cleans texts and keys, and leaves numbers alone", () => {
    const redactor = new Redactor(["12345678"]);
    const value = { a: [0.12345678, 12345678, "x12345678"], "12345678": { b: null } };
    expect(redactor.json(value)).toBe(
      '{"[redacted]":{"b":null},"a":[0.12345678,12345678,"x[redacted]"]}',
    );
    expect(redactor.json({ a: 1 }, 2)).toBe('{\n  "a": 1\n}');
  });

  test("finds a secret with quotes in a tool's JSON answer, by each method", async () => {
    const redactor = new Redactor([secret]);
    const observation = JSON.stringify({ key: secret });
    const value = { steps: [{ observation, argumentsText: JSON.stringify({ observation }) }] };
    const clean = {
      steps: [
        {
          observation: '{"key":"[redacted]"}',
          argumentsText: JSON.stringify({ observation: '{"key":"[redacted]"}' }),
        },
      ],
    };
    expect(JSON.parse(redactor.json(value))).toEqual(clean);
    expect(redactor.without(value)).toEqual(clean);
    expect(await redactor.cleanInTurns(value)).toEqual(clean);
    expect(JSON.parse(redactor.jsonText(JSON.stringify(value)))).toEqual(clean);
  });

  test("jsonText() leaves the numbers of JSON alone, and cleans other text", () => {
    const redactor = new Redactor(["12345678"]);
    expect(redactor.jsonText('{"a": -0.12345678, "b": "x12345678"}')).toBe(
      '{"a":-0.12345678,"b":"x[redacted]"}',
    );
    expect(redactor.jsonText('{"a": -0.12345678}')).toBe('{"a":-0.12345678}');
    expect(redactor.jsonText("{no 12345678")).toBe("{no [redacted]");
  });

  test("cleanInTurns() finds a secret at any place of a large value", async () => {
    const redactor = new Redactor([secret, "short-one"]);
    for (const before of [0, 65_520, 65_536, 131_060, 200_000]) {
      const value = { ids: [1, 2], texts: [`${"x".repeat(before)}${secret}`, "y".repeat(90_000)] };
      const clean = await redactor.cleanInTurns(value);
      expect(clean).toEqual({
        ids: [1, 2],
        texts: [`${"x".repeat(before)}[redacted]`, "y".repeat(90_000)],
      });
    }
    const harmless = { texts: ["x".repeat(200_000)] };
    expect(await redactor.cleanInTurns(harmless)).toBe(harmless);
  });

  test("error() cleans messages and stacks, those of causes too", () => {
    const cause = new Error(`said ${secret}`);
    const error = new Error(`Cannot reach it: ${secret}`, { cause });
    new Redactor([secret]).error(error);
    expect(error.message).toBe("Cannot reach it: [redacted]");
    expect(error.stack).not.toContain(secret);
    expect(cause.message).toBe("said [redacted]");
    expect(cause.stack).not.toContain(secret);
  });

  test("error() cleans further members of an error, but not an abort's", () => {
    const redactor = new Redactor([secret]);
    const discarded = [{ requestId: "1", reason: `HTTP 401 (${secret})`, tokenCount: 3 }];
    const error = new RolloutError("engine/unauthorized", secret, { discarded });
    redactor.error(error);
    expect(error.toFailure()).toEqual({
      party: "engine",
      code: "engine/unauthorized",
      message: "[redacted]",
      discarded: [{ requestId: "1", reason: "HTTP 401 ([redacted])", tokenCount: 3 }],
    });
    const { reason } = AbortSignal.abort() as { reason: unknown };
    expect(() => redactor.error(reason)).not.toThrow();
  });

  test("error() ignores unreadable errors of any origin", () => {
    const redactor = new Redactor([secret]);
    const circle: unknown[] = [secret];
    circle.push(circle);
    const unreadable = {
      get: (): never => {
        throw new Error("not now");
      },
      enumerable: true,
    };
    for (const odd of [
      Object.assign(new Error(secret), { list: circle }),
      Object.assign(new Error(secret), { list: [secret, 1n] }),
      Object.defineProperty(new Error(secret), "list", unreadable),
    ]) {
      const error = new RolloutError("user/exception", "Cannot hear the user", { cause: odd });
      redactor.error(error);
      expect(odd.message).toBe("[redacted]");
    }
    const frozen = Object.freeze(new Error(secret));
    expect(() => redactor.error(frozen)).not.toThrow();
  });
});

describe("hideEverywhere()", () => {
  test("has redactors take a secret out that they were not given, and those that are made later", () => {
    const before = new Redactor(["own-secret-1"]);
    hideEverywhere({ secrets: ["everywhere-1"], urls: ["http://me:every-word@host/"] });
    const text = "own-secret-1, everywhere-1, http://me:every-word@host/, every-word";
    expect(before.text(text)).toBe("[redacted], [redacted], http://[redacted]@host/, [redacted]");
    expect(new Redactor().json({ text: "everywhere-1" })).toBe('{"text":"[redacted]"}');
    expect(new Redactor().without("everywhere-1")).toBe("[redacted]");
  });

  test("keeps the newest secrets of many", () => {
    const secrets = Array.from({ length: 1_001 }, (_, index) => `secret-${index}-of-many`);
    hideEverywhere({ secrets });
    const redactor = new Redactor();
    expect(redactor.text("secret-0-of-many")).toBe("secret-0-of-many");
    expect(redactor.text("secret-700-of-many secret-1000-of-many")).toBe("[redacted] [redacted]");
  });

  test("takes out a secret that was read from a file with the end of its line", () => {
    hideEverywhere({ secrets: ["line-secret-1\n"] });
    expect(new Redactor().text("key: line-secret-1, more")).toBe("key: [redacted], more");
  });

  // Sorting all encodings for each of them would take minutes.
  test("learns many secrets one after another", () => {
    for (let index = 0; index < 2_000; index++) {
      hideEverywhere({ secrets: [`secret-${index}-of-episodes`] });
    }
    expect(new Redactor().text("secret-1999-of-episodes")).toBe("[redacted]");
  });
});

test("a text is cut before a secret, and not within one", () => {
  hideEverywhere({ secrets: ["cut-canary-one", "canary-one-two"] });
  const text = "say cut-canary-one-two now";
  expect([3, 4, 5, 17, 18, 21, 22].map((end) => safeCutIndex(text, end))).toEqual([
    3, 4, 4, 4, 4, 4, 22,
  ]);
  expect(safeCutIndex("cut-canary-one", 0)).toBe(0);
});

test("the end of a secret at the beginning of a text is taken away", () => {
  hideEverywhere({ secrets: ["front-canary-one"] });
  expect(withoutCutSecret("canary-one is it", [])).toBe(" is it");
  expect(withoutCutSecret("more words", ["much-more"])).toBe(" words");
  expect(withoutCutSecret("other words", ["much-more"])).toBe("other words");
});
