/** What a demonstration plays: enough to be looked at, in less than a minute. */
export const demoScope = { taskCount: 32, sampleCount: 4 } as const;
