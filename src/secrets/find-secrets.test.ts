import { describe, expect, test } from "vitest";
import {
  ofUrl,
  secretsOfArguments,
  secretsOfCommand,
  secretsOfNamed,
  shownUrl,
  withoutSecretsOf,
} from "./find-secrets.ts";
import { Redactor } from "./redactor.ts";

describe("secretsOfNamed()", () => {
  test("finds values by name, after a scheme, and in base64 pairs", () => {
    const basic = Buffer.from("me:pass-word-7").toString("base64");
    expect(
      secretsOfNamed({
        API_KEY: "abcdefgh",
        authorization: "Bearer tok-1",
        "proxy-auth": `Basic ${basic}`,
        DATABASE_PASSWORD: "p",
      }).secrets,
    ).toEqual([
      "abcdefgh",
      "Bearer tok-1",
      "tok-1",
      `Basic ${basic}`,
      basic,
      "me:pass-word-7",
      "pass-word-7",
      "p",
    ]);
  });

  test("finds values that look like keys under any name, and addresses", () => {
    const address = "postgres://me:pw@db/shop";
    expect(secretsOfNamed({ X: "ghp_012345", Y: "a1b2c3d4e5f6a7b8", DB: address })).toEqual({
      secrets: ["ghp_012345", "a1b2c3d4e5f6a7b8"],
      urls: [address],
    });
  });

  test("does not change names, paths, numbers and words", () => {
    const plain = {
      NODE_ENV: "production",
      MODEL: "gpt-4o-mini-2024-07-18",
      REGION: "us-central1-a",
      LANG: "en_US.UTF-8",
      TZ: "Europe/Berlin",
      ROOT: "/data/work",
      PORT: "8080",
      accept: "application/json",
      PROMPT: "You are kind to 3 customers.",
      SMALL: "a1b2c3",
    };
    expect(secretsOfNamed(plain)).toEqual({ secrets: [], urls: [] });
  });
});

describe("secretsOfNamed() distinguishes names of secrets from names with the same letters", () => {
  test.each([
    { GIT_AUTHOR_NAME: "Training Agent" },
    { AUTHOR: "Mia Okafor" },
    { AUTH_MODE: "required" },
    { PRIMARY_KEY: "order_id" },
    { primaryKey: "order_id" },
    { tokenType: "personal" },
    { TOKENIZER: "Qwen/Qwen3-8B" },
    { MAX_TOKENS: "20000000" },
    { KEYBOARD: "german-layout" },
    { KEY_PREFIX: "storefront" },
    { SSH_AUTH_SOCK: "/tmp/ssh-socket" },
    { PWD: "/work/desk-orders" },
    { BASE_COMMIT: "0f3a9c1d2b4e5f60718293a4b5c6d7e8f9012345" },
    { NOW: "2026-07-29T10:00:00Z" },
    { NOW: "2026-07-29T10:00:00.000+02:00" },
  ] as readonly Readonly<Record<string, string>>[])("%j holds none", (values) => {
    expect(secretsOfNamed(values)).toEqual({ secrets: [], urls: [] });
  });

  test.each([
    "SMTP_PASS",
    "MYSQL_PWD",
    "AUTHZ",
    "GOOGLE_OAUTH",
    "dbPass",
    "GITHUB_PAT",
    "ACCESS_TOKENS",
    "AUTHORIZATION",
    "x-functions-key",
    "BEARER",
    "PRIVATE_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "SESSION_COOKIE",
    "OAUTH_CLIENT_SECRET",
  ])("%s names one", (name) => {
    expect(secretsOfNamed({ [name]: "correct-horse" }).secrets).toContain("correct-horse");
  });

  test("a key of several lines is one under any name, and so is a session in a cookie", () => {
    const pem = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\n-----END PRIVATE KEY-----\n";
    expect(secretsOfNamed({ PEM: pem }).secrets).toEqual([pem]);
    expect(secretsOfNamed({ Cookie: "sid=a1b2c3d4e5f6a7b8; theme=dark" }).secrets).toContain(
      "a1b2c3d4e5f6a7b8",
    );
  });
});

describe("secretsOfNamed() finds the password of a connection", () => {
  test.each([
    "mongodb://me:plain-words@h1:27017,h2:27017/shop?authSource=admin",
    "postgresql://me:plain-words@h1:5432,h2:5432/shop",
    "redis://:plain-words@cache:6379/0",
    "jdbc:mysql://me:plain-words@db:3306/shop",
    "jdbc:postgresql://db/shop?user=me&password=plain-words",
    "jdbc:sqlserver://db:1433;user=sa;password=plain-words;encrypt=true",
    "DATABASE=shop;HOSTNAME=db;UID=me;PWD=plain-words",
    "Driver={Some Driver};Server=db;Password={plain-words}",
    `Host=db;Password="plain-words"`,
    `host=db user=me password='plain-words'`,
    "api-key=plain-words,other=1",
    "X-Api-Key: plain-words\nAccept: text/plain",
    "endpoint: shop\napi_key: plain-words\n",
    '[{"name": "Authorization", "value": "Bearer plain-words"}]',
    '{"servers": [{"api_key": "plain-words"}]}',
  ])("%s", (value) => {
    const { secrets, urls } = secretsOfNamed({ SHOP: value });
    const redactor = new Redactor(secrets);
    for (const url of urls) redactor.learnUrl(url);
    expect(redactor.text("got plain-words.")).toBe("got [redacted].");
  });

  test("also with a character that no URL has, and with spaces", () => {
    for (const [value, password] of [
      ["postgres://me:plain#words@db/shop", "plain#words"],
      ["Server=db;User Id=me;Password=plain words here;Port=1", "plain words here"],
    ] as const) {
      expect(secretsOfNamed({ SHOP: value }).secrets).toContain(password);
    }
    expect(secretsOfNamed({ LINES: "PWD=/work/desk\nHOME=/root" }).secrets).toEqual([]);
    const task = "Ask for two things.\nPassword: required\nName: welcome";
    expect(secretsOfNamed({ TASK: task }).secrets).toEqual([]);
  });
});

describe("secretsOfArguments()", () => {
  test("does not change a model's name and an author", () => {
    const args = [
      "--tokenizer",
      "Qwen/Qwen3-8B",
      "--author=Mia Okafor",
      "--max-tokens",
      "20000000",
    ];
    expect(secretsOfArguments(args)).toEqual({ secrets: [], urls: [] });
  });

  test("finds values of flags, variables, headers and addresses", () => {
    const url = "https://host/mcp?key=abc";
    expect(
      secretsOfArguments([
        "-y",
        "@scope/server-files@1.2.3",
        "--root",
        "/data",
        "--port",
        "8080",
        "--api-key",
        "one",
        "--token=two",
        "-e",
        "DB_PASSWORD=three",
        "--verbose",
        "--header",
        "Authorization: Bearer four",
        url,
        "sk-five-555",
      ]),
    ).toEqual({
      secrets: ["one", "two", "three", "Bearer four", "four", "sk-five-555"],
      urls: [url],
    });
  });

  test("finds wrapped secrets: variables of a container, JSON, headers without a space, connection texts", () => {
    const headers = JSON.stringify({ Authorization: "Bearer one-token", deep: { apiKey: "two" } });
    expect(
      secretsOfArguments([
        "run",
        "--env=API_KEY=three",
        "-eTOKEN=four",
        "--config",
        headers,
        "--header",
        "X-Api-Key:five",
        "--db",
        "Host=db;Password=six;Port=1",
      ]).secrets,
    ).toEqual(["three", "four", "Bearer one-token", "one-token", "two", "five", "six"]);
    expect(secretsOfNamed({ OPENAPI_HEADERS: headers }).secrets).toEqual([
      "Bearer one-token",
      "one-token",
      "two",
    ]);
  });

  test.each([
    [["--header=Authorization: Bearer plain-words"]],
    [["--header=X-Api-Key:plain-words"]],
    [["--header=X-Workspace-Id: plain-w0rd5-a1b2c3"]],
    [["-c", "exec server --token plain-words --port 80"]],
    [["-lc", "API_KEY=plain-words exec server"]],
    [["-c", 'export API_KEY="plain-words"; exec server']],
    [["-c", `curl -H 'X-Api-Key: plain-words' http://host`]],
    [["-c", `curl -H "Authorization: Bearer plain-words" http://host`]],
    [["-c", "server postgres://me:plain-words@db/shop --verbose"]],
    [["--stdio", "npx server --api-key plain-words"]],
    [["-u", "me:plain-words"]],
    [["--user=me:plain-words"]],
    [["https://host/mcp?workspace=plain-w0rd5-a1b2c3-0001"]],
    [["--servers", '[{"env": [{"name": "API_KEY", "value": "plain-words"}]}]']],
    [["--servers", '{"shop": {"args": ["--token", "plain-words"]}}']],
  ])("finds the secrets wrapped in %j", (args) => {
    const { secrets, urls } = secretsOfArguments(args);
    const redactor = new Redactor(secrets);
    for (const url of urls) redactor.learnUrl(url);
    const [key = ""] = /plain-words|plain-w0rd5[-\w]+/.exec(args.join(" ")) ?? [];
    expect(redactor.text(`got ${key}.`)).toBe("got [redacted].");
  });

  test("leaves the words of a sentence, and a shell's own", () => {
    for (const args of [
      ["--system", "Order A1B2C3D4E5F6G7 is the customer's: don't ask for it"],
      ["-c", "cd /work/desk && exec node server.js --root /data --verbose"],
      ["run", "--user", "1000:1000", "-u", "postgres:postgres"],
    ]) {
      expect(secretsOfArguments(args)).toEqual({ secrets: [], urls: [] });
    }
  });

  test("finds them in a line for the shell", () => {
    expect(secretsOfCommand(`python agent.py --api-key 'a b' --name "shop agent"`).secrets).toEqual(
      ["a b"],
    );
  });
});

test("withoutSecretsOf() removes the secrets of repeated arguments from an error message", () => {
  for (const [word, shown] of [
    ["--api-key=sk-one-two-three", "--api-key=[redacted]"],
    ["sk-proj-abcdefghij", "[redacted]"],
    ["http://me:pass-word@host:1", "http://[redacted]@host:1"],
    ["--modle=Qwen3-8B", "--modle=Qwen3-8B"],
  ] as const) {
    expect(withoutSecretsOf([word], `unknown option '${word}'`)).toBe(`unknown option '${shown}'`);
  }
});

test("shownUrl() omits possible secrets in a URL", () => {
  for (const [url, shown] of [
    ["http://127.0.0.1:8000/mcp", "http://127.0.0.1:8000/mcp"],
    ["http://127.0.0.1:8000", "http://127.0.0.1:8000"],
    ["http://127.0.0.1:8000/", "http://127.0.0.1:8000/"],
    ["https://me:pw@host:1/a?key=b#c", "https://host:1/a"],
    ["https://host/s/0a1b2c3d4e5f6a7b8c9d/mcp", "https://host/s/…/mcp"],
    ["127.0.0.1:1", "127.0.0.1:1"],
    ["me:pw@host/x?key=b", "…@host/x?…"],
  ] as const) {
    expect(shownUrl(url)).toBe(shown);
  }
  expect(ofUrl("https://host/s/0a1b2c3d4e5f6a7b8c9d/mcp").secrets).toEqual([
    "0a1b2c3d4e5f6a7b8c9d",
  ]);
});

test("a long value is scanned once", () => {
  expect(secretsOfNamed({ FILE: "y".repeat(200_000) }).secrets).toEqual([]);
  const pairs = secretsOfNamed({ DSN_LIST: `${"y".repeat(200_000)} Password=hunter22` });
  expect(pairs.secrets.at(-1)).toContain("hunter22");
  // A search from each character would take minutes.
});
