"""What was measured: kept, printed and written."""

import json
import statistics
import subprocess


class Figures:
    """All figures of a run, in the order in which they were taken."""

    def __init__(self):
        self.all = []

    def add(self, name, value, unit, peer=None, ratio=None):
        """`peer` names what `ratio` compares with; `None` where there is no comparison."""
        figure = {
            "name": name,
            "value": round(value, 4),
            "unit": unit,
            "peer": peer,
            "ratio": ratio if ratio is None else round(ratio, 3),
        }
        self.all.append(figure)
        print("  " + self._line(figure), flush=True)

    def compare(self, name, unit, samples, ours, peer):
        """Adds the medians of `samples`, a dictionary of lists; that of `ours` with its ratio to
        `peer`: the median of the ratios round by round, so that what disturbs a whole round
        weighs on both."""
        for who, values in samples.items():
            if who == ours and peer in samples:
                ratio = ratio_by_round(values, samples[peer])
                self.add(f"{name} {who}", statistics.median(values), unit, peer, ratio)
            else:
                self.add(f"{name} {who}", statistics.median(values), unit)

    def write(self, path):
        path.write_text(json.dumps(self.all, indent=1) + "\n")

    def print_table(self):
        width = max(len(figure["name"]) for figure in self.all)
        for figure in self.all:
            print(self._line(figure, width))

    @staticmethod
    def _line(figure, width=0):
        value = figure["value"]
        value = f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"
        compared = ""
        if figure["ratio"] is not None:
            compared = f"   {figure['ratio']:.2f} of {figure['peer']}"
        return f"{figure['name']:<{width}}  {value:>14} {figure['unit']}{compared}"


def ratio_by_round(ours, theirs):
    """The median of ours to theirs, each pair taken in one round."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True) if b)


def interleaved(rounds, contenders, measure):
    """Measures each contender once a round, in turns that change direction each time. Gives a
    list of values for each, in the order of the rounds."""
    samples = {name: [] for name in contenders}
    for number in range(rounds):
        names = list(contenders)
        for name in names if number % 2 == 0 else reversed(names):
            samples[name].append(measure(contenders[name]))
    return samples


def run(*command):
    """The output of a program that has to succeed."""
    command = [str(word) for word in command]
    done = subprocess.run(command, capture_output=True, text=True, start_new_session=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout
