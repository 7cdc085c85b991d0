import { readVariable } from "../../secrets/read-variable.ts";
import type { Command } from "commander";
import { describeError } from "../../errors.ts";
import {
  readServiceConfig,
  serviceSettings,
  type ServiceConfig,
} from "../../service/service-settings.ts";
import { displaySettings, pickSettings, readDisplay, type Display } from "../display-settings.ts";
import { addConfiguredSettings, givenSettings } from "../option.ts";
import { groupSettings } from "../setting-groups.ts";
import { hideSecrets, writeError, writeOut } from "../write-out.ts";

/** The settings of the command. Each is a flag and a key of its configuration file. */
const settings = [...serviceSettings, ...displaySettings];

/** `turnwright serve`: plays rollouts that a trainer requests over HTTP. */
export function defineServe(command: Command): void {
  command.description(
    "Plays groups of rollouts that a trainer asks for over HTTP, and streams each as it ends: exact " +
      "sampled ids with logprobs, mask and reward. What was accepted survives a restart on the same " +
      "--out. docs/service.md has the calls; GET /openapi.json describes them.",
  );
  addConfiguredSettings(command, settings, groupSettings);
  command.action(async (flags: Record<string, unknown>) => {
    const given = await givenSettings(settings, flags);
    await serve(readServiceConfig(pickSettings(serviceSettings, given)), readDisplay(given));
  });
}

async function serve(config: ServiceConfig, display: Display): Promise<void> {
  const { createService } = await import("../../service/create-service.ts");
  const { serveRollouts } = await import("../../service/server/serve-rollouts.ts");
  const { createRunRedactor } = await import("../../composition/run-secrets.ts");
  const { readVersion } = await import("../../composition/version.ts");
  const { stopOnInterrupt, untilAborted } = await import("../interrupt.ts");
  hideSecrets(createRunRedactor(config.run, process.env));
  const token = readVariable(process.env, config.tokenEnv, "--token-env");
  const signal = stopOnInterrupt();
  const note = (text: string): void => {
    if (!display.quiet) writeError(`note: ${text}\n`);
  };
  const lock = { onWait: note, signal };
  await using created = await createService(config, { signal, lock, note });
  const { service, warnings, gym, agentLightning, redactor } = created;
  hideSecrets(redactor);
  for (const text of warnings) note(text);
  const { batches, queuedAttempts } = service.health;
  if (batches > 0)
    note(`${batches} batches of an earlier start continue: ${queuedAttempts} attempts`);
  await using served = await serveRollouts(service, {
    host: config.host,
    port: config.port,
    version: await readVersion(),
    ...(token !== undefined && { token }),
    gym,
    redactor,
    onTrouble: (error) => writeError(`trouble: ${describeError(error)}\n`),
  });
  const { url } = served;
  await writeOut(
    display.json
      ? `${JSON.stringify({ type: "listening", url, folder: config.dir })}\n`
      : `listening   ${url}\ndata        ${config.dir}\n`,
  );
  await Promise.race([
    untilAborted(signal),
    service.failed,
    ...(agentLightning ? [agentLightning.work(service)] : []),
  ]);
  // Streams can send their last line before the connections are closed.
  service.stop();
}
