import { withDefaults, type Setting, type Settings } from "./option.ts";
import { rolloutSettings } from "./rollout-settings.ts";

/** Settings that an evaluation names or defaults otherwise than a rollout. */
const replaced: Readonly<Record<string, Setting>> = {
  samples: {
    name: "trials",
    kind: { type: "number", min: 1, max: Infinity, whole: true },
    value: "k",
    help: "attempts per task: pass^1 to pass^k",
    default: 1,
  },
  temperature: {
    name: "temperature",
    kind: { type: "number", min: 0, max: 100 },
    value: "t",
    help: "sampling temperature; 0 is greedy",
    default: 0,
  },
};

const price = { type: "number", min: 0, max: Infinity } as const;

/** What only an evaluation has; none of it changes what is played. */
const own: readonly Setting[] = [
  {
    name: "resume",
    kind: { type: "flag" },
    help: "go on with the run in --out: settings that are not given are taken from it",
  },
  {
    name: "policy-input-price",
    kind: price,
    value: "usd",
    help: "US dollars per million prompt tokens, for the report",
  },
  {
    name: "policy-output-price",
    kind: price,
    value: "usd",
    help: "US dollars per million sampled tokens, for the report",
  },
];

/** Every setting of `turnwright eval`. */
export const evalSettings: readonly Setting[] = [
  ...rolloutSettings.map((setting) => replaced[setting.name] ?? setting),
  ...own,
];

/** An evaluation's settings as those of the rollout that it plays. */
export function toRolloutSettings({ trials, ...settings }: Settings): Settings {
  const ownNames = new Set(own.map(({ name }) => name));
  const kept = Object.entries(settings).filter(([name]) => !ownNames.has(name));
  return { ...Object.fromEntries(kept), samples: trials };
}

/** The table with the settings of a stored run as its defaults. */
export function withStoredDefaults(stored: Settings): readonly Setting[] {
  return withDefaults(evalSettings, { ...stored, trials: stored["samples"] });
}
