#!/usr/bin/env node
import module from "node:module";
import { reportUnhandledRejections } from "../async/pass-over-floating.ts";
import { delayOptimization } from "../composition/delay-optimization.ts";
import { endLingering, reportUnsettled } from "./end-process.ts";
import { runCommandLine } from "./run-command-line.ts";
import { hideSecretsIn, writeError } from "./write-out.ts";

// A reader such as `head` may close the pipe early. The exit status is that of SIGPIPE.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(141);
  throw error;
});

delayOptimization();

// With Node 22.1 or newer, compiled code is cached for the next start.
(module as { enableCompileCache?: () => unknown }).enableCompileCache?.();

// Code of an environment or agent may forget to await a promise. This must not end the process.
const floating = reportUnhandledRejections((line) => writeError(`turnwright: ${line}\n`));

const onSettled = reportUnsettled();

try {
  await runCommandLine(process.argv.slice(2));
  onSettled();
  endLingering();
} catch (error) {
  hideSecretsIn(error);
  // An error of our own still ends the process.
  floating[Symbol.dispose]();
  throw error;
}
