import { setFlagsFromString } from "node:v8";

/** V8's flag by release of Node.js, with about four times its default value. */
const flags: Readonly<Record<string, string>> = {
  20: "--interrupt-budget=300000",
  22: "--invocation-count-for-turbofan=12000",
  24: "--invocation-count-for-turbofan=12000",
};

/**
 * Lets V8 run functions longer before it optimises them. A process that starts runs thousands of functions for a short
 * time, and would spend a quarter of its first seconds on optimised code that it hardly uses. Functions that stay in
 * use are optimised some seconds later.
 */
export function delayOptimization(): void {
  const flag = optimizationFlag(process.versions.node);
  if (flag !== undefined) setFlagsFromString(flag);
}

/** Returns the flag of a version of Node.js, or `undefined` for one that may not know it. */
export function optimizationFlag(version: string): string | undefined {
  return flags[version.slice(0, version.indexOf("."))];
}
