/** Lines and bars over time, with the present at the right and a text label. */

/** Width of the view box; the SVG is stretched to the available width. */
const width = 300;
const height = 48;

export function Line(props: {
  values: readonly (number | null)[];
  /** The value at the top of the chart. */
  max: number;
  label: string;
  class?: string;
}) {
  const { values, label } = props;
  const max = Math.max(props.max, 1e-9);
  const step = width / Math.max(values.length - 1, 1);
  const y = (value: number) => height - 1 - (Math.min(value, max) / max) * (height - 3);
  return (
    <svg
      class={`chart ${props.class ?? ""}`}
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <title>{label}</title>
      <line class="base" x1="0" x2={width} y1={height - 0.5} y2={height - 0.5} />
      {stretches(values).map(({ from, points }) => {
        const line = points.map((value, at) => `${round((from + at) * step)},${round(y(value))}`);
        const first = round(from * step);
        const last = round((from + points.length - 1) * step);
        return (
          <g key={from}>
            <polygon
              class="area"
              points={`${first},${height} ${line.join(" ")} ${last},${height}`}
            />
            <polyline class="line" points={line.length > 1 ? line.join(" ") : `${line} ${line}`} />
          </g>
        );
      })}
    </svg>
  );
}

/** Splits values into runs without a missing value. */
function stretches(values: readonly (number | null)[]): { from: number; points: number[] }[] {
  const found: { from: number; points: number[] }[] = [];
  for (const [at, value] of values.entries()) {
    const last = found.at(-1);
    if (value === null) continue;
    if (last && last.from + last.points.length === at) last.points.push(value);
    else found.push({ from: at, points: [value] });
  }
  return found;
}

export function Bars(props: {
  values: readonly { readonly all: number; readonly bad?: number }[];
  label: string;
}) {
  const { values, label } = props;
  const max = Math.max(...values.map(({ all }) => all), 4);
  const step = width / Math.max(values.length, 1);
  const bar = (at: number, value: number, name: string) =>
    value > 0 && (
      <rect
        key={`${name}${at}`}
        class={name}
        x={round(at * step + step * 0.12)}
        width={round(step * 0.76)}
        y={round(height - (value / max) * (height - 2))}
        height={round((value / max) * (height - 2))}
      />
    );
  return (
    <svg
      class="chart"
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <title>{label}</title>
      <line class="base" x1="0" x2={width} y1={height - 0.5} y2={height - 0.5} />
      {values.map(({ all }, at) => bar(at, all, "bar"))}
      {values.map(({ bad = 0 }, at) => bar(at, bad, "bar bad"))}
    </svg>
  );
}

const radius = 42;
const arc = Math.PI * radius;

/** A half ring that shows the remaining share, with a mark at the share that is reserved. */
export function Gauge(props: { value: number; max: number; reserve: number; label: string }) {
  const { value, max, reserve, label } = props;
  const share = max > 0 ? Math.min(value / max, 1) : 0;
  const path = `M ${50 - radius} 50 A ${radius} ${radius} 0 0 1 ${50 + radius} 50`;
  const level = share <= reserve ? "low" : share <= 0.5 ? "middle" : "";
  const turn = Math.PI * (1 - reserve);
  const at = (from: number) => [50 + Math.cos(turn) * from, 50 - Math.sin(turn) * from].map(round);
  const [x1, y1] = at(radius - 7);
  const [x2, y2] = at(radius + 7);
  return (
    // biome-ignore lint/a11y/useSemanticElements: browsers do not let a <meter> be drawn as a ring
    <div
      class="gauge"
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={max}
      aria-valuenow={value}
    >
      <svg viewBox="0 0 100 56" aria-hidden="true">
        <path class="track" d={path} />
        {share > 0 && (
          <path
            class={`level ${level}`}
            d={path}
            stroke-dasharray={`${round(share * arc)} ${round(arc)}`}
          />
        )}
        {reserve > 0 && <line class="mark" x1={x1} y1={y1} x2={x2} y2={y2} />}
      </svg>
      <span class="gauge-value">{value}</span>
    </div>
  );
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
