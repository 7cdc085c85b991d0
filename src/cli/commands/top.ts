import type { Command } from "commander";
import { setTimeout as sleep } from "node:timers/promises";
import { UsageError } from "../../errors.ts";
import { queueSettings, readQueueConfig, type QueueConfig } from "../../queue/queue-settings.ts";
import { completeSettings, flag, type Setting } from "../../composition/config/setting.ts";
import { pickSettings } from "../display-settings.ts";
import { addConfiguredSettings, givenSettings } from "../option.ts";
import { writeOut } from "../write-out.ts";

const ownSettings = [
  { name: "once", kind: flag, help: "look once, and end", operational: true },
  {
    name: "every",
    kind: { type: "number", min: 0.2, max: 3_600 },
    value: "seconds",
    help: "how often to look",
    default: 2,
    operational: true,
  },
  { name: "json", kind: flag, help: "print a JSON line each time", operational: true },
] as const satisfies readonly Setting[];

const reaching = queueSettings.filter(({ name }) => name !== "shared");
const settings: readonly Setting[] = [...reaching, ...ownSettings];

/** `turnwright top`: shows the state of a queue. */
export function defineTop(command: Command): void {
  command.description(
    "Shows the runs and workers of a queue: how much waits, how fast it goes, what each waits for. " +
      "It refreshes every few seconds until Ctrl-C; if its output is not a terminal, it prints once.",
  );
  addConfiguredSettings(command, settings);
  command.action(async (flags: Record<string, unknown>) => {
    const given = await givenSettings(settings, flags);
    const queue = readQueueConfig(pickSettings(queueSettings, given));
    if (queue === undefined) {
      throw new UsageError("Missing --queue: the Valkey or Redis that attempts travel by");
    }
    const { once, every, json } = completeSettings<(typeof ownSettings)[number]>(
      ownSettings,
      pickSettings(ownSettings, given),
    );
    const isOnce = once === true || (!process.stdout.isTTY && json !== true);
    await watch(queue, { isOnce, everyMs: every * 1_000, isJson: json === true });
  });
}

async function watch(
  config: QueueConfig,
  shown: { readonly isOnce: boolean; readonly everyMs: number; readonly isJson: boolean },
): Promise<void> {
  const { QueueStore } = await import("../../queue/store/queue-store.ts");
  const { QueueWatch } = await import("../../queue/read-queue.ts");
  const { printQueue } = await import("../queue-table.ts");
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => stop.abort());
  await using store = await QueueStore.connect(config);
  const queue = new QueueWatch(store);
  for (;;) {
    const state = await queue.read();
    const isScreen = process.stdout.isTTY && !shown.isOnce && !shown.isJson;
    const text = shown.isJson ? `${JSON.stringify(state)}\n` : printQueue(state);
    // The escape codes move the cursor to the top left and clear the screen.
    await writeOut(isScreen ? `\u001b[H\u001b[J${text}` : text);
    if (shown.isOnce || stop.signal.aborted) return;
    await sleep(shown.everyMs, undefined, { signal: stop.signal }).catch(() => {});
    if (stop.signal.aborted) return;
  }
}
