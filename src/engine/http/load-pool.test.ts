import { createRequire } from "node:module";
import type { Pool } from "undici";
import { expect, test } from "vitest";
import { loadPool } from "./load-pool.ts";

const library = createRequire(import.meta.url)("undici") as { Pool: typeof Pool };

test("loadPool() loads the library's pool without the library", () => {
  const names: string[] = [];
  const require = createRequire(import.meta.url);
  const pool = loadPool((name) => (names.push(name), require(name)));
  expect(pool).toBe(library.Pool);
  expect(names).toEqual(["undici/lib/dispatcher/pool.js"]);
});

test.each([
  ["MODULE_NOT_FOUND", undefined],
  ["ERR_PACKAGE_PATH_NOT_EXPORTED", undefined],
  [undefined, { Pool: library.Pool }],
])("loadPool() loads the complete library if the pool's file is missing (%s)", (code, found) => {
  const pool = loadPool((name) => {
    if (name === "undici") return library;
    if (code === undefined) return found;
    throw Object.assign(new Error("it is not there"), { code });
  });
  expect(pool).toBe(library.Pool);
});

test("loadPool() rethrows other errors", () => {
  const load = () => {
    throw new SyntaxError("it is broken");
  };
  expect(() => loadPool(load)).toThrow("it is broken");
});
