import { refuseCommand } from "./refuse-command.ts";
import type { Sandbox, Sandboxes } from "./sandbox.ts";

/**
 * Adds `of()` to sandboxes, and removes sandboxes of dead processes before the first one is opened.
 */
export function completeSandboxes(parts: Pick<Sandboxes, "open" | "sweep">): Sandboxes {
  const key = {};
  let swept: Promise<unknown> | undefined;
  const open: Sandboxes["open"] = async (options) => {
    // Sandboxes can be opened even if the removal of old ones fails.
    swept ??= parts.sweep().catch(() => undefined);
    await swept;
    return guardCommands(await parts.open(options));
  };
  return {
    open,
    sweep: async () => await parts.sweep(),
    of: async ({ resource, signal }) => await resource(key, async () => await open({ signal })),
  };
}

/** Answers commands that no system can start, before they reach the sandbox. */
function guardCommands(box: Sandbox): Sandbox {
  const guarded = {
    id: box.id,
    run: async (command, options) =>
      refuseCommand(command, options) ?? (await box.run(command, options)),
    [Symbol.asyncDispose]: async () => await box[Symbol.asyncDispose](),
    // Allows `JSON.stringify()` of a state that contains the sandbox.
    toJSON: () => ({ sandbox: box.id }),
  } satisfies Sandbox & { toJSON(): object };
  return guarded;
}
