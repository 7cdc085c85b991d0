import {
  completeSettings,
  flag,
  type GivenSettings,
  type Setting,
} from "../composition/config/setting.ts";
import { pickSettings, readDisplay, type Display } from "./display-settings.ts";

/** How a run can be watched while it is played. */
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

/** How a run is shown. */
export interface RunDisplay extends Display {
  /** Whether the run can be looked at in the browser while it is played. Default false. */
  readonly view?: boolean;
  /** Where its metrics are served on this machine, 0 for any free port; absent: nowhere. */
  readonly metricsPort?: number;
}

/** Reads how a command that plays a run shows it. */
export function readRunDisplay(settings: GivenSettings): RunDisplay {
  const values = completeSettings(watchSettings, pickSettings(watchSettings, settings));
  const { view, "metrics-port": metricsPort } = values;
  return {
    ...readDisplay(settings),
    view: view === true,
    ...(metricsPort !== undefined && { metricsPort }),
  };
}
