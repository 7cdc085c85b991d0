import type { SamplingParameters } from "../../engine/engine.ts";
import { UsageError, describeError } from "../../errors.ts";
import { requireIds } from "./chat-config.ts";
import { columnSettings, readColumns, type ColumnsConfig } from "./columns-config.ts";
import { engineSettings, readEngineConfig, type EngineConfig } from "./engine-config.ts";
import { limitSettings } from "./limits-config.ts";
import { readRendererConfig, rendererSettings, type RendererConfig } from "./renderer-config.ts";
import { readSampling, samplingSettings } from "./sampling-config.ts";
import { withoutUndefined } from "../../values/without-undefined.ts";
import {
  completeSettings,
  count,
  flag,
  seconds,
  text,
  type GivenSettings,
  type Setting,
  type SettingValues,
} from "./setting.ts";
import { defaultSessionLimits, type SessionLimits } from "../../gateway/session/session-limits.ts";
import { rowChoices, type RowChoice } from "../../gateway/tree/collect-rows.ts";
import { ignoredText } from "../../gateway/tree/ignored-text.ts";

/** The settings that only a gateway has. */
const ownSettings = [
  {
    name: "host",
    kind: text,
    value: "address",
    help: "address to listen on; any but this machine's own needs --admin-token-env",
    default: "127.0.0.1",
    operational: true,
  },
  {
    name: "port",
    kind: count(0),
    value: "n",
    help: "port to listen on; 0: any",
    default: 8484,
    operational: true,
  },
  {
    name: "admin-token-env",
    kind: text,
    value: "variable",
    help: "environment variable that holds the token for opening and ending sessions",
    operational: true,
  },
  {
    name: "open-sessions",
    kind: flag,
    help: "an API key that is not known opens a session of its own",
    operational: true,
  },
  {
    name: "out",
    kind: text,
    value: "dir",
    help: "folder of the run; the same command continues it",
    operational: true,
  },
  {
    name: "scorer",
    kind: text,
    value: "file",
    help: "module with a score() that rewards finished sessions",
    operational: true,
  },
  {
    name: "rows",
    kind: { type: "choice", choices: rowChoices },
    help: "training rows of a session: of all branches, the main one, or the longest",
    default: "all",
  },
  {
    name: "match",
    kind: { type: "choice", choices: ["calls", "strict"] },
    help: "how exactly turns have to come back: text beside calls may differ, or may not",
    default: "calls",
  },
  {
    name: "ignore",
    kind: { type: "list" },
    value: "regexp",
    help: "taken out of messages before they are compared (default: Claude Code's billing line)",
  },
  {
    name: "policy-model",
    kind: { type: "list" },
    value: "name",
    help: "model name to train on; turns of others are not trained (default: all)",
  },
  {
    name: "client-sampling",
    kind: { type: "choice", choices: ["pin", "honour"] },
    help: "sampling parameters of requests: the gateway's count, or the client's",
    default: "pin",
  },
  {
    name: "constraints",
    kind: { type: "choice", choices: ["ignore", "refuse"] },
    help: "tools of servers, tool choices and formats that nothing enforces",
    default: "ignore",
  },
  {
    name: "max-turns",
    kind: count(1),
    value: "n",
    help: "turns of a session, over all branches",
    default: defaultSessionLimits.maxTurns,
  },
  {
    name: "max-tokens-per-turn",
    kind: count(1),
    value: "n",
    help: "most tokens sampled in one turn, also if the client requests more",
    default: defaultSessionLimits.maxTokensPerTurn,
  },
  { name: "max-session-tokens", kind: count(1), value: "n", help: "tokens sampled in a session" },
  {
    name: "max-sessions",
    kind: count(1),
    value: "n",
    help: "sessions that are open at once",
    default: defaultSessionLimits.maxSessions,
    operational: true,
  },
  {
    name: "idle-timeout",
    kind: seconds,
    value: "s",
    help: "seconds without requests after which a session ends",
    default: defaultSessionLimits.idleTimeoutMs / 1000,
    operational: true,
  },
  {
    name: "hold",
    kind: seconds,
    value: "s",
    help: "seconds that requests wait while the gateway is paused",
    default: 300,
    operational: true,
  },
] as const satisfies readonly Setting[];

type SharedLimit = Extract<
  (typeof limitSettings)[number],
  { readonly name: "max-context" | "engine-timeout" }
>;

const sharedLimits = limitSettings.filter(
  (setting): setting is SharedLimit =>
    setting.name === "max-context" || setting.name === "engine-timeout",
);

/** The settings of `turnwright gateway`. */
export const gatewaySettings = [
  ...engineSettings,
  ...rendererSettings,
  ...samplingSettings,
  ...columnSettings,
  ...sharedLimits,
  ...ownSettings,
] as const;

type GatewayValues = SettingValues<(typeof gatewaySettings)[number]>;

/** The configuration of a gateway. */
export interface GatewayConfig {
  readonly engine: EngineConfig;
  readonly renderer: RendererConfig;
  readonly sampling: SamplingParameters;
  /** The side columns of rows. Absent if rows have none. */
  readonly columns?: ColumnsConfig;
  readonly limits: Partial<SessionLimits>;
  readonly host: string;
  readonly port: number;
  readonly adminTokenEnv?: string;
  readonly opensSessions: boolean;
  readonly dir?: string;
  readonly scorerFile?: string;
  readonly rows: RowChoice;
  readonly strictness: "calls" | "strict";
  /**
   * Patterns of text that the gateway ignores when it compares messages. Absent: the gateway's
   * default.
   */
  readonly ignore?: readonly RegExp[];
  readonly policyModels?: readonly string[];
  readonly clientSampling: "pin" | "honour";
  readonly constraints: "ignore" | "refuse";
  readonly holdMs: number;
  readonly settings: GatewayValues;
}

const gatewayRemedy = "let agents call that server itself, or use an engine that returns ids";

/**
 * Reads a gateway's settings.
 *
 * @throws UsageError for a setting that is unknown, missing or of the wrong type.
 */
export function readGatewayConfig(settings: GivenSettings): GatewayConfig {
  const values = completeSettings<(typeof gatewaySettings)[number]>(gatewaySettings, settings);
  const engine = readEngineConfig(values);
  requireIds(engine, {
    doing: "serve a gateway",
    why: "and a gateway records ids",
    remedy: gatewayRemedy,
  });
  const { ignore = [], "policy-model": models = [] } = values;
  if (values.port > 65_535) throw new UsageError(`Cannot use --port ${values.port}: at most 65535`);
  return {
    engine,
    renderer: readRendererConfig(values, engine.kind),
    sampling: readSampling(values),
    limits: {
      maxTurns: values["max-turns"],
      maxTokensPerTurn: values["max-tokens-per-turn"],
      maxSessionTokens: values["max-session-tokens"] ?? Infinity,
      maxSessions: values["max-sessions"],
      idleTimeoutMs: values["idle-timeout"] * 1000,
      // The engine's own limit ends earlier, because its error describes the tries.
      engineTimeoutMs: values["engine-timeout"] * 1000 + 60_000,
      ...withoutUndefined({ maxContextTokens: values["max-context"] }),
    },
    host: values.host,
    port: values.port,
    opensSessions: values["open-sessions"] === true,
    rows: values.rows,
    strictness: values.match,
    clientSampling: values["client-sampling"],
    constraints: values.constraints,
    holdMs: values.hold * 1000,
    ...withoutUndefined({
      columns: readColumns(values),
      ignore: ignore.length === 0 ? undefined : ignore.map(readPattern),
      adminTokenEnv: values["admin-token-env"],
      dir: values.out,
      scorerFile: values.scorer,
      policyModels: models.length === 0 ? undefined : models,
    }),
    settings: values,
  };
}

function readPattern(source: string): RegExp {
  try {
    const pattern = new RegExp(source, "gmu");
    // Checks at the start that the pattern can be matched in linear time.
    ignoredText(pattern);
    return pattern;
  } catch (error) {
    throw new UsageError(`Cannot use --ignore ${source}: ${describeError(error)}`);
  }
}
