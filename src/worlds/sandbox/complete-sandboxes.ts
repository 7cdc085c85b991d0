import { refuseCommand } from "./refuse-command.ts";
import type { Sandbox, Sandboxes } from "./sandbox.ts";

/** Gives sandboxes their `of()`, and the sweep before the first of them. */
export function completeSandboxes(parts: Pick<Sandboxes, "open" | "sweep">): Sandboxes {
  const key = {};
  let swept: Promise<unknown> | undefined;
  const open: Sandboxes["open"] = async (options) => {
    // A failure to clean up does not stop anyone from working.
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

/** Keeps commands that no system can start from a sandbox: they are answered here. */
function guardCommands(box: Sandbox): Sandbox {
  const guarded = {
    id: box.id,
    run: async (command, options) =>
      refuseCommand(command, options) ?? (await box.run(command, options)),
    [Symbol.asyncDispose]: async () => await box[Symbol.asyncDispose](),
    // A state that holds it can be written.
    toJSON: () => ({ sandbox: box.id }),
  } satisfies Sandbox & { toJSON(): object };
  return guarded;
}
