#!/usr/bin/env node
import module from "node:module";
import { reportUnhandledRejections } from "../async/pass-over-floating.ts";
import { delayOptimization } from "../composition/delay-optimization.ts";
import { runCommandLine } from "./run-command-line.ts";
import { hideSecretsIn, writeError } from "./write-out.ts";

// Whoever reads our output may have seen enough: `… | head`. The status is that of SIGPIPE.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(141);
  throw error;
});

delayOptimization();

// Where Node can keep what it compiled (22.1 and newer), the next start compiles nothing.
(module as { enableCompileCache?: () => unknown }).enableCompileCache?.();

// A promise that code of an environment or agent forgets to await must not end the process.
const floating = reportUnhandledRejections((line) => writeError(`turnwright: ${line}\n`));

try {
  await runCommandLine(process.argv.slice(2));
} catch (error) {
  hideSecretsIn(error);
  // An error of our own still ends the process.
  floating[Symbol.dispose]();
  throw error;
}
