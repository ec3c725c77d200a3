"""Forms of questions, one module each. `default` names them."""
