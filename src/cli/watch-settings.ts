import {
  completeSettings,
  flag,
  type GivenSettings,
  type Setting,
} from "../composition/config/setting.ts";
import { pickSettings, readDisplay, type Display } from "./display-settings.ts";

/** The settings for watching a run while it plays. */
export const watchSettings = [
  {
    name: "view",
    kind: flag,
    help: "show the run in the browser while it plays, and print the address",
    operational: true,
  },
  {
    name: "metrics-port",
    kind: { type: "number", min: 0, max: 65_535, whole: true },
    value: "n",
    help: "serve /metrics for Prometheus on 127.0.0.1; 0 for any free port",
    operational: true,
  },
] as const satisfies readonly Setting[];

/** The form of a run's output. */
export interface RunDisplay extends Display {
  /** True to show the run in the browser while it plays. Default false. */
  readonly view?: boolean;
  /** The port of the metrics on this machine; 0: any free port. Absent: no metrics. */
  readonly metricsPort?: number;
  /** True to end with the command that people need next. Default false. */
  readonly namesNext?: boolean;
}

/** Reads the form of a run's output from its settings. */
export function readRunDisplay(settings: GivenSettings): RunDisplay {
  const values = completeSettings(watchSettings, pickSettings(watchSettings, settings));
  const { view, "metrics-port": metricsPort } = values;
  return {
    ...readDisplay(settings),
    view: view === true,
    ...(metricsPort !== undefined && { metricsPort }),
  };
}
