"""The studio: play Tetris in a browser, be learnt as you play, and watch your understudy play.

`revealed studio` starts it. It needs the extra `studio`; nothing else of the project imports this
package.

    server/     the web application: addresses, checks of requests, limits
    game/       one game of Tetris from its seed and moves, games in memory, the quiz
    storage/    the database, and the one thread that writes to it
    learning/   the posterior of each game, learnt in a thread beside the server
    research/   studies with participants and conditions, and what is found in them
    static/     the page: HTML, styles, JavaScript modules
"""
