"""NasRNN: five cells of the recurrent unit that neural architecture search found, each with weights of its own.

Only the first cell's input is the graph's; the initial state and the inputs of the other cells are constants, so half
of the products fold. At full size the weights are 2.1 GB.
"""

from graph_builder import GraphBuilder

INPUT_GAIN, STATE_GAIN = 0.8, 2.0  # a state lies in 0 to 0.7, an input is standard normal


def _cell(b, x, state, hidden):
    def gate(i):
        of_input = b.matmul(x, b.weight(f"w_input.{i}", (hidden, hidden), hidden, INPUT_GAIN))
        of_state = b.matmul(state, b.weight(f"w_state.{i}", (hidden, hidden), hidden, STATE_GAIN))
        return b.add(b.relu(of_input), b.relu(of_state))

    t = [gate(i) for i in range(8)]
    m0 = b.add(b.relu(t[0]), b.sigmoid(t[3]))
    m1 = b.add(b.sigmoid(t[1]), b.tanh(t[2]))
    m2 = b.mul(b.sigmoid(t[4]), b.tanh(t[5]))
    m3 = b.mul(b.sigmoid(t[6]), b.relu(t[7]))
    m4 = b.add(b.sigmoid(m1), b.tanh(m2))
    m5 = b.mul(b.tanh(m0), b.tanh(m3))
    return b.tanh(b.mul(b.tanh(m4), b.tanh(m5)))


def nasrnn(seed, small, external_path=None):
    b = GraphBuilder("nasrnn", seed, opset=13, external_path=external_path)
    hidden, cells = (2560, 5) if not small else (48, 5)
    x = b.input("input", (1, hidden))
    with b.scope("cell1"):
        state = b.weight("initial_state", (1, hidden), 1.0, 0.5)
    for cell in range(1, cells + 1):
        with b.scope(f"cell{cell}"):
            if cell > 1:
                x = b.weight("input", (1, hidden), 1.0)
            state = _cell(b, x, state, hidden)
    b.output(state, "state")
    return b
