import { commandLine } from "../run/disk/command-line.ts";

/**
 * Returns this command with its flags, for the lock of a run's folder. No flag contains a key; keys in addresses are
 * removed.
 */
export function ownCommand(): string {
  return commandLine(["", "turnwright", ...process.argv.slice(2)]);
}
