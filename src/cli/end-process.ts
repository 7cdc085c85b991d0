import { writeError } from "./write-out.ts";

/** The time that timers and connections of foreign code have after a command, in milliseconds. */
const graceMs = 10_000;

/** The kinds of resources that standard input, output and errors use. */
const ownKinds: ReadonlySet<string> = new Set(["PipeWrap", "TTYWrap"]);

/** Node's exit status if the event loop is empty and the program still waits. */
const unsettledStatus = 13;

/**
 * Ends the process after a command if something still runs that an environment or an agent started, such as
 * `setInterval()`. Output that waits for a slow reader is written first.
 */
export function endLingering(): void {
  setTimeout(() => {
    if (process.stdout.writableLength > 0) return endLingering();
    const active = process.getActiveResourcesInfo().filter((kind) => !ownKinds.has(kind));
    const kinds = [...new Set(active)].join(", ");
    writeError(`turnwright: note: ended what still ran after the command (${kinds})\n`);
    process.exit();
  }, graceMs).unref();
}

/**
 * Reports a process that ends while its command still waits, such as for a module that never finishes loading. Returns
 * a function that the end of the command calls.
 */
export function reportUnsettled(): () => void {
  const onExit = (): void => {
    if (process.exitCode !== undefined && process.exitCode !== unsettledStatus) return;
    writeError(
      "turnwright: Cannot finish: nothing runs that could settle a promise that the command waits for, " +
        "expected one that settles (a top-level `await` of a module?)\n",
    );
  };
  process.once("exit", onExit);
  return () => process.off("exit", onExit);
}
