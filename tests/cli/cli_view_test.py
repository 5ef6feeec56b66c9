"""The HTML page of `view`, in headless Chromium: what it shows is what the report says, and everything on it works.

    python tests/cli/cli_view_test.py [CHECK...]

Prints one line a failure, then "N passed, N failed"; exits with 1 if anything failed.
"""

import contextlib
import json
import os
import random
import sys
import tempfile

import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]

import browser
import checks
import command
import tiny_models

MOCK = {
    "targets": [
        {"name": "hook", "compiler": "hook",
         "rule": "only_valid(combine(union(composite('two', is_op('add')(is_op('nn.relu')(*), *)), "
                 "composite('one', is_op('add')(*, *))), joins: any))"},
        {"name": "llvm", "rule": "combine(is_op_up_to('anchor'), max_depth: 4)"}],
    "mock_costs": {"per_op": {"hook": 1.5, "llvm": 2}, "fusion_benefit": 0.9, "max_estimates": 0}}
LONGEST = 10000
NASTY = ['"quoted"', "<b>bold</b>", "</script><script>window.hacked=1</script>", "\u202eright to left", "a & b", "x" * LONGEST,
         "<!--", "{{data}}", "${1}`", "tab\there", "'); alert(1); ('"]


def random_relay(count, seed=1):
    """A branching graph of that many element-wise operators and softmaxes; the result depends on all of them."""
    generator = random.Random(seed)
    lines, unread = [], ["%x"]
    while len(lines) < count:
        near = lambda: f"%{max(0, len(lines) - 1 - int(generator.expovariate(0.25)))}" if lines else "%x"
        op = generator.choice(["add", "add", "multiply", "nn.relu", "exp", "tanh", "nn.softmax"])
        joins = count - len(lines) <= len(unread)
        first = unread[-1] if joins or generator.random() < 0.8 else near()
        operands = [first] + ([unread[0] if joins else generator.choice([near(), unread[max(0, len(unread) - 3)]])] if joins or op in ("add", "multiply") else [])
        unread = [value for value in unread if value not in operands] + [f"%{len(lines)}"]
        lines.append(f"  %{len(lines)} = {op if len(operands) == 1 or op == 'multiply' else 'add'}({', '.join(operands)});")
    assert len(unread) == 1
    return ('#[version = "0.0.5"]\ndef @main(%x: Tensor[(4, 16), float32]) -> Tensor[(4, 16), float32] {\n' + "\n".join(lines) +
            f"\n  %{count - 1}\n}}\n")


def nasty_model():
    """A chain whose nodes and tensors have names that no page, JSON or terminal likes."""
    tensors = [name + "." for name in reversed(NASTY)] + ["end"]
    nodes = [onnx.helper.make_node("Relu" if i % 2 else "Tanh", [tensors[i]], [tensors[i + 1]], NASTY[i]) for i in range(len(NASTY))]
    return tiny_models.model(nodes, {tensors[0]: [1, 4]}, {"end": [1, 4]})


class Bench:
    def __init__(self, folder, cache):
        self.folder, self.cache = folder, cache

    def path(self, name):
        return os.path.join(self.folder, name)

    def command(self, *arguments):
        result = command.run([*arguments], self.folder, cache=self.cache)
        assert result.returncode == 0, f"{arguments}: exit status {result.returncode}: {result.stderr}"
        return result.stdout

    @contextlib.contextmanager
    def view(self, model, *flags):
        """The report and the opened page, while the block runs."""
        self.command("view", model, "-o", "page.html", "--json", "report.json", *flags)
        with open(self.path("report.json")) as file:
            report = json.load(file)
        with browser.Browser() as chromium:
            yield report, chromium.open(self.path("page.html"))

    def mock_view(self, count):
        tiny_models.write(self.folder, "random.relay", random_relay(count))
        tiny_models.write(self.folder, "mock.json", json.dumps(MOCK))
        return self.view("random.relay", "--config", "mock.json")


def kernels_shown(page):
    return page.run("document.querySelectorAll('#world .kernel').length")


def check_page(report, page):
    """What holds for every page: boxes, sums, search, plans, clicks; no complaint."""
    plans = [report] + report["plans"]
    assert page.run("document.querySelectorAll('#plans input').length") == len(plans)
    for p, plan in reversed(list(enumerate(plans))):
        page.run(f"document.querySelectorAll('#plans input')[{p}].click()")
        assert kernels_shown(page) == len(plan["kernels"]), (kernels_shown(page), len(plan["kernels"]))
        total = float(page.run("document.getElementById('kernels').dataset.total"))
        assert abs(total - plan["predicted_ms"]) < 1e-9 + 1e-6 * plan["predicted_ms"], (total, plan["predicted_ms"])
    names = page.run("[...document.querySelectorAll('#kernels tbody tr')].map(r => r.cells[1].textContent)")
    known = {k["name"] for k in report["kernels"] + report["conversions"]}
    assert names and set(names) <= known, set(names) - known

    kernel = report["kernels"][len(report["kernels"]) // 2]
    # Sorted by predicted time, the slowest kernel or conversion comes first.
    page.click("#kernels th[data-key=part]")
    first = page.run("document.querySelector('#kernels tbody tr').cells[1].textContent")
    assert first == max(report["kernels"] + report["conversions"], key=lambda k: k["predicted_ms"])["name"], first
    page.click("#kernels th[data-key=order]")

    page.click("#search")
    page.type(kernel["name"])
    expected = sum(any(kernel["name"] in text for text in [k["name"], k["target"]] + [t for o in k["ops"] for t in (o["op"], o["onnx_node"])])
                   for k in report["kernels"])
    hits = page.run("document.querySelectorAll('.kernel.hit').length")
    assert hits == expected >= 1 and page.run("document.getElementById('hits').textContent") == f"{hits} of {len(report['kernels'])}"
    page.press("Enter")
    details = page.run("document.getElementById('details').textContent")
    assert report["kernels"][page.run("+document.querySelector('.kernel.sel').dataset.k")]["name"] in details
    page.press("Escape")
    assert page.run("document.querySelectorAll('.kernel.hit, .kernel.sel').length") == 0

    for tab in ("timeline", "memory", "kernels"):
        page.click(f"#tab-{tab}")
        assert page.run(f"document.getElementById('tab-{tab}').getAttribute('aria-selected')") == "true"
    for colour in ("time", "memory", "target"):
        page.run(f"(() => {{ const s = document.getElementById('colour'); s.value = '{colour}'; s.dispatchEvent(new Event('change')); }})()")
        assert kernels_shown(page) == len(report["kernels"])
    assert not (complaints := page.complaints()), "\n".join(complaints)


def check_small_model(bench):
    """A measured model: each operator's backend, cost, alternatives and refusals can be read on the page."""
    onnx.save(tiny_models.small_net(), bench.path("net.onnx"))
    with bench.view("net.onnx") as (report, page):
        check_page(report, page)
        k, kernel = next((k, kernel) for k, kernel in enumerate(report["kernels"]) if any(o["onnx_node"] == "conv" for o in kernel["ops"]))
        page.click(f"#k{k}")
        details = page.run("document.getElementById('details').textContent")
        assert kernel["name"] in details and kernel["target"] in details and "conv" in details, details
        assert f"{kernel['cost_ms']['median']:.4g}"[:4] in details, (kernel["cost_ms"], details)
        for other in kernel["alternatives"]:
            assert other["target"] in details, (other, details)
            assert "reason" not in other or other["reason"][:40] in details, (other, details)
        assert report["timeline"] and report["arena"] is not None and report["peak_memory"]["measured"] > 1e6
        page.click("#tab-timeline")
        assert page.run("document.querySelectorAll('#pane .piece').length") == len(report["timeline"])
        page.click("#tab-memory")
        assert page.run("document.querySelectorAll('#pane .piece').length") == len(report["arena"])
        assert page.pdf().startswith(b"%PDF"), "it cannot be printed"
        assert not (complaints := page.complaints()), "\n".join(complaints)


def check_refusal(bench):
    """Of a backend that could not run an operator the page says so, and why."""
    nodes = [onnx.helper.make_node("Conv", ["image", "filters"], ["y"], "conv", kernel_shape=[3, 3])]
    onnx.save(tiny_models.model(nodes, {"image": [1, 3, 8, 8], "filters": [4, 3, 3, 3]}, {"y": [1, 4, 6, 6]}), bench.path("free.onnx"))
    targets = {"targets": [{"name": "openvino", "rule": "is_op('nn.conv2d')"}, {"name": "onednn"}]}
    tiny_models.write(bench.folder, "refused.json", json.dumps(targets))
    with bench.view("free.onnx", "--config", "refused.json") as (report, page):
        check_page(report, page)
        (refusal,) = report["rejections"]
        assert refusal["backend"] == "openvino" and refusal["node"] == "conv", refusal
        page.click("#k0")
        details = page.run("document.getElementById('details').textContent")
        assert "openvino" in details and refusal["reason"] in details, (refusal, details)


def check_report_file(bench):
    """From a report of `bench --json` the same page as from the model."""
    onnx.save(tiny_models.small_net(), bench.path("net.onnx"))
    bench.command("bench", "net.onnx", "--duration", "0.1", "--json", "saved.json")
    with bench.view("saved.json") as (report, page):
        check_page(report, page)


def check_names(bench):
    """Names that mean something to HTML, to a script or to a terminal are text everywhere."""
    onnx.save(nasty_model(), bench.path("nasty.onnx"))
    with bench.view("nasty.onnx", "--targets", "reference") as (report, page):
        check_page(report, page)
        assert page.run("window.hacked") is None and page.run("document.querySelectorAll('#world b, #details b b').length") == 0
        shown = {o["onnx_node"] for kernel in report["kernels"] for o in kernel["ops"]}
        assert shown == set(NASTY), shown ^ set(NASTY)
        for name in ("</script><script>window.hacked=1</script>", '"quoted"', "<b>bold</b>"):
            page.run(f"(() => {{ const s = document.getElementById('search'); s.value = {json.dumps(name)}; s.dispatchEvent(new Event('input')); }})()")
            assert page.run("document.querySelectorAll('.kernel.hit').length") == 1, name
        for name in NASTY:
            said = bench.command("explain", "nasty.onnx", name, "--targets", "reference")
            assert all(c == "\n" or ord(c) >= 32 for c in said) and "\u202e" not in said, repr(said)


def check_random(bench):
    """A branching graph of a few hundred operators, by mock costs; keys walk through it."""
    with bench.mock_view(200) as (report, page):
        check_page(report, page)
        page.run("document.getElementById('graph').focus()")
        seen = set()
        for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowUp", "ArrowLeft"):
            page.press(key)
            seen.add(page.run("+document.querySelector('.kernel.sel').dataset.k"))
        assert len(seen) >= 2, seen
        dark = page.run("document.documentElement.dataset.theme")
        page.press("t", "t")
        assert page.run("document.documentElement.dataset.theme") != dark
        assert page.run("document.querySelectorAll('#world .op').length") > 0, "200 operators are shown inside their kernels"
        page.press("e", "e")
        assert page.run("document.querySelectorAll('#world .op').length") == 0 and kernels_shown(page) == len(report["kernels"])


def check_large(bench):
    """5,000 operators: collapsed at first, and everything works."""
    with bench.mock_view(5000) as (report, page):
        assert page.run("document.querySelectorAll('#world .op').length") == 0, "kernels start collapsed"
        check_page(report, page)


def roofs_shown(bench, report):
    """The column "of roof" of a page made from that report."""
    tiny_models.write(bench.folder, "roofs.json", json.dumps(report))
    bench.command("view", "roofs.json", "-o", "roofs.html")
    with browser.Browser() as chromium:
        page = chromium.open(bench.path("roofs.html"))
        column = page.run("[...document.querySelectorAll('#kernels th')].findIndex(h => h.dataset.key === 'roof')")
        return page.run(f"[...document.querySelectorAll('#kernels tbody tr')].map(r => r.cells[{column}].textContent)")


def check_roofs(bench):
    """Shares of the roof are those of the report; peaks that a kernel exceeds are wrong, so then none is shown."""
    onnx.save(tiny_models.small_net(), bench.path("net.onnx"))
    bench.command("view", "net.onnx", "-o", "page.html", "--json", "report.json")
    with open(bench.path("report.json")) as file:
        report = json.load(file)
    bounds = {"float32", ""} | set(report["env"]["peaks"]["units"]) | {level["name"] for level in report["env"]["peaks"]["levels"]}
    assert [level["name"] for level in report["env"]["peaks"]["levels"]][-1] == "memory", report["env"]["peaks"]
    for kernel in report["kernels"]:
        assert kernel["roof"]["bound"] in bounds, kernel["roof"]
        kernel["roof"]["least_ms"] = 0.5 * kernel["cost_ms"]["median"]
    shown = roofs_shown(bench, report)
    assert shown.count("50%") == len(report["kernels"]), shown
    report["kernels"][0]["roof"]["least_ms"] *= 3
    assert not any("%" in cell for cell in roofs_shown(bench, report))


CHECKS = (check_roofs, check_small_model, check_refusal, check_report_file, check_names, check_random, check_large)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as shared:
        sys.exit(checks.run(CHECKS, sys.argv[1:], lambda folder: Bench(folder, os.path.join(shared, "cache"))))
