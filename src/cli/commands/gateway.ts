import { readVariable } from "../../secrets/read-variable.ts";
import type { Command } from "commander";
import { describeError } from "../../errors.ts";
import {
  gatewaySettings,
  readGatewayConfig,
  type GatewayConfig,
} from "../../composition/config/gateway-config.ts";
import { displaySettings, pickSettings, readDisplay, type Display } from "../display-settings.ts";
import { addConfiguredSettings, givenSettings } from "../option.ts";
import { groupSettings } from "../setting-groups.ts";
import { describeNews } from "../progress-line.ts";
import { writeError, writeOut } from "../write-out.ts";

/** The settings of the command. Each is a flag and a key of its configuration file. */
const settings = [...gatewaySettings, ...displaySettings];

/** `turnwright gateway`: serves the policy to existing agents, and records what it samples. */
export function defineGateway(command: Command): void {
  command.description(
    "Serves Chat Completions, Responses and Messages to agents of any kind, streams what is sampled, " +
      "and writes the exact sampled ids with their logprobs and loss mask. An agent is given a base " +
      "URL and a key: POST /sessions opens a session and returns both.",
  );
  addConfiguredSettings(command, settings, groupSettings);
  command.action(async (flags: Record<string, unknown>) => {
    const given = await givenSettings(settings, flags);
    await serveAgents(readGatewayConfig(pickSettings(gatewaySettings, given)), readDisplay(given));
  });
}

async function serveAgents(config: GatewayConfig, display: Display): Promise<void> {
  const { createGatewayRun } = await import("../../composition/gateway-run.ts");
  const { serveGateway } = await import("../../gateway/server/serve.ts");
  const { stopOnInterrupt, untilAborted } = await import("../interrupt.ts");
  const signal = stopOnInterrupt();
  const note = (text: string): void => {
    if (!display.quiet) writeError(`note: ${text}\n`);
  };
  const adminToken = readVariable(process.env, config.adminTokenEnv, "--admin-token-env");
  const onTrouble = (error: unknown): void => writeError(`trouble: ${describeError(error)}\n`);
  await using run = await createGatewayRun(config, {
    signal,
    onTrouble,
    onEngine: (news) => note(describeNews(news)),
  });
  for (const text of [...run.warnings, ...run.notes]) note(text);
  if (config.opensSessions && adminToken === undefined && config.scorerFile === undefined) {
    note("nothing can reward the sessions that keys open: add --admin-token-env or --scorer");
  }
  const { openCount } = run.gateway.store;
  if (openCount > 0) note(`${openCount} sessions of an earlier start continue`);
  {
    const { host, port, opensSessions } = config;
    const place = {
      host,
      port,
      opensSessions,
      ...(adminToken !== undefined && { adminToken }),
    };
    await using served = await serveGateway(run.gateway, place);
    await writeOut(introduction(served.url, run.folder.name, { config, display }));
    await untilAborted(signal);
  }
  await run.end();
  const { warning } = run.gateway;
  if (warning !== undefined) note(warning);
  const { finished } = run.progress();
  await writeOut(
    display.json
      ? `${JSON.stringify({ type: "summary", ...run.progress(), gateway: run.gateway.counts })}\n`
      : `${finished} sessions are finished, ${run.gateway.store.openCount} can continue: ${run.folder.name}\n`,
  );
}

function introduction(
  url: string,
  folder: string,
  { config, display }: { readonly config: GatewayConfig; readonly display: Display },
): string {
  if (display.json) return `${JSON.stringify({ type: "listening", url, folder })}\n`;
  const key = config.opensSessions ? "any key" : "the token of POST /sessions";
  return (
    `listening   ${url}\n` +
    `openai      OPENAI_BASE_URL=${url}/v1 OPENAI_API_KEY=<${key}>\n` +
    `anthropic   ANTHROPIC_BASE_URL=${url} ANTHROPIC_AUTH_TOKEN=<${key}>\n` +
    `rows        ${folder}\n`
  );
}
