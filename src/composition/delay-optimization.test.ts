import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { optimizationFlag } from "./delay-optimization.ts";

test.each([
  ["20.19.0", "--interrupt-budget=300000"],
  ["22.22.1", "--invocation-count-for-turbofan=12000"],
  ["24.1.0", "--invocation-count-for-turbofan=12000"],
  ["21.0.0", undefined],
])("has the flag of Node.js %s", (version, flag) => {
  expect(optimizationFlag(version)).toBe(flag);
});

test("this release of Node.js knows its flag", () => {
  const [name] = optimizationFlag(process.versions.node)?.split("=") ?? [""];
  const { stdout } = spawnSync(process.execPath, ["--v8-options"], { encoding: "utf8" });
  expect(stdout).toContain(name);
});
