import { execFileSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { LongestFirst } from "./test/support/longest-first.ts";

/** Those of V8 come and go with Node's versions. */
const options = execFileSync(process.execPath, ["--v8-options"], { encoding: "utf8" });

export default defineConfig({
  test: {
    // Only what hangs meets these limits: a machine may be twenty times overloaded.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    // A process of its own for each file takes three times the work. Files share nothing that one of
    // them changes: what they stub they put back, and what is kept between them is only read.
    isolate: false,
    // One more than there are cores: files that start processes, browsers or stores wait for them.
    maxWorkers: availableParallelism() + 1,
    // Node imports what was compiled beforehand: the runner's own way to import is slower.
    globalSetup: ["./test/support/compile.mjs", "./test/support/scratch.mjs"],
    experimental: { viteModuleRunner: false, nodeLoader: false },
    execArgv: [
      "--import",
      new URL("test/support/run-compiled.mjs", import.meta.url).href,
      // The lines of errors are those of the sources.
      "--enable-source-maps",
      // Most code runs a few times only: compiling it for speed, as early as is usual, costs more than it
      // brings. Later versions have something between.
      ...(/^ *--interrupt-budget /m.test(options) ? ["--interrupt-budget=400000"] : []),
      // Room for what is thrown away at once: whole runs in simulated time spent a fifth of theirs clearing it up.
      "--max-semi-space-size=64",
    ],
    sequence: { sequencer: LongestFirst },
    include: [
      "src/**/*.test.ts",
      "packages/*/src/**/*.test.ts",
      "environments/**/*.test.ts",
      "test/**/*.test.ts",
    ],
  },
});
