import { commandLine } from "../run/disk/command-line.ts";

/** This program in messages: a script of the checkout, or the installed package. */
export const programName =
  process.env["npm_package_name"] === "turnwright"
    ? "npm run --silent turnwright --"
    : "npx turnwright";

/**
 * Returns this command with its flags, for the lock of a run's folder. No flag contains a key; keys in addresses are
 * removed.
 */
export function ownCommand(): string {
  return commandLine(["", "turnwright", ...process.argv.slice(2)]);
}
